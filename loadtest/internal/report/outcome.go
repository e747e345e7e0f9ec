package report

import (
	encoding "encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"liveroom/loadtest/internal/client"
)

// Result is everything a run has to say; its JSON is what -json writes.
type Result struct {
	Scenario    string                         `json:"scenario"`
	About       string                         `json:"about"`
	Command     []string                       `json:"command"`
	Started     time.Time                      `json:"started"`
	Seconds     float64                        `json:"seconds"` // connecting included
	Environment Environment                    `json:"environment"`
	Values      map[string]float64             `json:"values"` // by quantity: seconds, bytes, counts, ratios
	Latencies   map[string]client.Distribution `json:"latencies,omitempty"`
	Classes     map[string]client.Flow         `json:"classes,omitempty"`
	Delivery    *client.Delivery               `json:"delivery,omitempty"`
	Bound       *Bound                         `json:"bound,omitempty"`
	Timeline    []Slot                         `json:"timeline,omitempty"`
	SlotSeconds float64                        `json:"slot_seconds,omitempty"`
	Bands       []Band                         `json:"bands,omitempty"`                  // named stretches of the time line
	Began       float64                        `json:"attempts_began_seconds,omitempty"` // the first attempt, since sampling began
	Server      []ServerSample                 `json:"server,omitempty"`
	Rounds
	Connections client.Connections `json:"connections"`
	Closes      map[string]int64   `json:"closes,omitempty"`  // by close code, only what the server or the network did
	Reasons     map[string]int64   `json:"reasons,omitempty"` // of answers other than 200
	Objectives  []Objective        `json:"objectives,omitempty"`
	Notes       []string           `json:"notes,omitempty"` // what to know before one believes the figures
}

func (r *Result) Note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// AddLatencies adds every distribution that has something in it.
func (r *Result) AddLatencies(l *client.Latencies) {
	for m := range client.Measures {
		d, ok := l.Distribution(m)
		if !ok {
			continue
		}
		r.Latencies[m.String()] = d
		prefix := m.String() + "_"
		if m == client.ToReceipt {
			prefix = ""
		}
		for name, v := range map[string]float64{"p50": d.P50, "p90": d.P90, "p99": d.P99, "p999": d.P999, "max": d.Max} {
			r.Values[prefix+name] = v
		}
	}
}

// Write puts the result into the files that are named, unless they are "", and the summary on stdout. A json of - is stdout.
func (r *Result) Write(json, report string, stdout io.Writer) error {
	if json == "-" {
		return r.encode(stdout)
	}
	r.summary(stdout)
	if json != "" {
		if err := ToFile(json, r.encode); err != nil {
			return fmt.Errorf("json: %w", err)
		}
	}
	if report != "" {
		if err := os.MkdirAll(report, 0o755); err != nil {
			return fmt.Errorf("report: %w", err)
		}
		path := filepath.Join(report, r.Scenario+".html")
		if err := ToFile(path, r.page); err != nil {
			return fmt.Errorf("report: %w", err)
		}
		fmt.Fprintf(stdout, "\nreport: %s\n", path)
	}
	return nil
}

func (r *Result) encode(w io.Writer) error { return EncodeJSON(w, r) }

func EncodeJSON(w io.Writer, v any) error {
	e := encoding.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

func ToFile(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
