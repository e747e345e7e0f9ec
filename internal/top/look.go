package top

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Source is a node's admin address.
type Source struct {
	Base   string // scheme and host
	Client *http.Client
	Bearer func() (string, error) // an admin's token for the next request
}

// maxAnswer bounds what is read of one answer, in bytes.
const maxAnswer = 16 << 20

// Look is what a node says at one moment.
type Look struct {
	At      time.Time
	Ready   ready
	Rooms   []listed // of all nodes
	Room    *detail  // the one that was asked for; nil: none was, or it is not there
	samples model.Vector
}

type ready struct {
	Status   string   `json:"status"`
	Node     string   `json:"node"`
	Version  string   `json:"version"`
	Degraded []string `json:"degraded"`
	UptimeMS int64    `json:"uptime_ms"`
}

type rates struct {
	Danmaku  float64 `json:"danmaku"`
	Gift     float64 `json:"gift"`
	Like     float64 `json:"like"`
	Degraded float64 `json:"degraded"`
	Refused  float64 `json:"refused"`
}

// messages is all that was admitted, per second.
func (r rates) messages() float64 { return r.Danmaku + r.Gift + r.Like }

type listed struct {
	ID     string `json:"id"`
	Title  string `json:"title"`
	Online int    `json:"online"`
	People int    `json:"people"`
	Likes  int64  `json:"likes"`
	Closed bool   `json:"closed"`
	Rates  rates  `json:"rates"`
}

type detail struct {
	listed
	Quota []struct {
		Rule   string `json:"rule"`
		Action string `json:"action"`
		Level  int64  `json:"level"`
		Burst  int64  `json:"burst"`
	} `json:"quota"`
	Refusals []struct {
		User   string `json:"user"`
		Action string `json:"action"`
		Reason string `json:"reason"`
		Rule   string `json:"rule"`
		Count  int    `json:"count"`
		AgeMS  int64  `json:"age_ms"`
	} `json:"refusals"`
}

// Look asks the node, and for one room more where room is not "".
func (s *Source) Look(ctx context.Context, room string) (*Look, error) {
	l := &Look{}
	var list struct {
		Rooms []listed `json:"rooms"`
	}
	if err := s.read(ctx, "/readyz", &l.Ready); err != nil {
		return nil, err
	}
	if err := s.read(ctx, "/api/v1/rooms?limit=1000", &list); err != nil {
		return nil, err
	}
	l.Rooms = list.Rooms
	if room != "" {
		l.Room = &detail{}
		if err := s.read(ctx, "/api/v1/rooms/"+url.PathEscape(room), l.Room); err != nil {
			l.Room = nil // it may have closed since
		}
	}
	err := s.get(ctx, "/metrics", func(body io.Reader) (err error) {
		p := expfmt.NewTextParser(model.UTF8Validation)
		families, err := p.TextToMetricFamilies(body)
		if err != nil {
			return err
		}
		l.samples, err = expfmt.ExtractSamples(&expfmt.DecodeOptions{}, slices.Collect(maps.Values(families))...)
		return err
	})
	l.At = time.Now()
	return l, err
}

func (s *Source) read(ctx context.Context, path string, into any) error {
	return s.get(ctx, path, func(body io.Reader) error { return json.NewDecoder(body).Decode(into) })
}

func (s *Source) get(ctx context.Context, path string, take func(io.Reader) error) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.Base+path, nil)
	if err != nil {
		return err
	}
	bearer, err := s.Bearer()
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+bearer)
	res, err := s.Client.Do(req)
	if err != nil {
		return fmt.Errorf("no server answers at %s: %w", s.Base, err)
	}
	defer res.Body.Close()
	body := io.LimitReader(res.Body, maxAnswer)
	if res.StatusCode != http.StatusOK && (path != "/readyz" || res.StatusCode != http.StatusServiceUnavailable) { // a draining node says so
		said, _ := io.ReadAll(io.LimitReader(body, 4<<10)) // what there is of it
		return fmt.Errorf("%s%s answers %s: %s", s.Base, path, res.Status, clean(strings.TrimSpace(string(said))))
	}
	if err := take(body); err != nil {
		return fmt.Errorf("read %s%s: %w", s.Base, path, err)
	}
	return nil
}

// value is the sum of a metric's series that have all the labels, given as name and value by turns.
func (l *Look) value(name string, labels ...string) (sum float64) {
	for _, s := range l.samples {
		if is(s, name, labels) {
			sum += float64(s.Value)
		}
	}
	return sum
}

func is(s *model.Sample, name string, labels []string) bool {
	if string(s.Metric[model.MetricNameLabel]) != name {
		return false
	}
	for i := 0; i < len(labels); i += 2 {
		if string(s.Metric[model.LabelName(labels[i])]) != labels[i+1] {
			return false
		}
	}
	return true
}

// by sums a metric by one of its labels.
func (l *Look) by(label, name string, labels ...string) map[string]float64 {
	out := map[string]float64{}
	for _, s := range l.samples {
		if is(s, name, labels) {
			out[string(s.Metric[model.LabelName(label)])] += float64(s.Value)
		}
	}
	return out
}

// since is what happened between two looks.
type since struct{ from, to *Look }

// rate is how fast a counter grew, per second.
func (d since) rate(name string, labels ...string) float64 {
	return d.grew(d.to.value(name, labels...) - d.from.value(name, labels...))
}

// grew makes a growth a rate; a node that was started meanwhile has none.
func (d since) grew(n float64) float64 {
	return max(0, n) / max(d.to.At.Sub(d.from.At).Seconds(), 1e-3)
}

// rates are by's.
func (d since) rates(label, name string, labels ...string) map[string]float64 {
	out, before := d.to.by(label, name, labels...), d.from.by(label, name, labels...)
	for k := range out {
		out[k] = d.grew(out[k] - before[k])
	}
	return out
}

// quantile is a bound that the share q of a histogram's new values is not above, in its unit; NaN when there are none.
func (d since) quantile(q float64, name string) float64 {
	after, before := d.to.by("le", name+"_bucket"), d.from.by("le", name+"_bucket")
	bounds := map[float64]float64{}
	for le, n := range after {
		var bound float64
		if _, err := fmt.Sscan(le, &bound); err == nil {
			bounds[bound] = n - before[le]
		}
	}
	all := bounds[math.Inf(1)]
	if all <= 0 {
		return math.NaN()
	}
	for _, bound := range slices.Sorted(maps.Keys(bounds)) {
		if bounds[bound] >= q*all {
			return bound
		}
	}
	return math.Inf(1)
}
