package api

import (
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"liveroom/internal/trace"
)

// otherRoute is what no route matches, in metrics.
const otherRoute = "other"

// measure makes liveroom_http_request_seconds, with every series at zero. Codes are classes, so that there are hundreds of series and
// not thousands.
func (a *API) measure(reg prometheus.Registerer) *prometheus.HistogramVec {
	v := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "liveroom_http_request_seconds", Help: "How long calls of the HTTP API took, by route and class of the answer's code.",
		Buckets: []float64{.005, .025, .1, .5, 2.5, 10},
	}, []string{"route", "code"})
	routes := append(a.Routes(), otherRoute)
	for _, route := range routes {
		for class := 2; class <= 5; class++ {
			v.WithLabelValues(route, classOf(class*100))
		}
	}
	if reg != nil {
		reg.MustRegister(v)
	}
	return v
}

func classOf(code int) string { return fmt.Sprintf("%dxx", min(max(code/100, 2), 5)) }

// timed measures what a route answers.
func (a *API) timed(route string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		coded := &codedWriter{ResponseWriter: w, code: http.StatusInternalServerError} // what a panic is answered with, further out
		next.ServeHTTP(coded, r)
		a.seconds.WithLabelValues(route, classOf(coded.code)).Observe(time.Since(began).Seconds())
	})
}

// traced has a call be an operation, which belongs to the caller's trace if it is known who calls.
func (a *API) traced(rt route, w http.ResponseWriter, r *http.Request, c caller) (_ *http.Request, end func()) {
	ctx := r.Context()
	if c.known {
		ctx = trace.Accept(ctx, r.Header)
	}
	ctx, op := a.cfg.Trace.Begin(ctx, trace.API, rt.name(), r.PathValue("room"))
	if rt.waits() {
		op.Waits()
	}
	return r.WithContext(ctx), func() {
		op.Answered(rt.method, rt.pattern, w.(*codedWriter).code) // timed's
		op.End(nil)
	}
}

// codedWriter knows the answer's code.
type codedWriter struct {
	http.ResponseWriter
	code int
}

// WriteHeader implements [http.ResponseWriter].
func (w *codedWriter) WriteHeader(code int) {
	w.code = code
	w.ResponseWriter.WriteHeader(code)
}

// Unwrap is for [http.ResponseController].
func (w *codedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// How readers wait for events.
const (
	byPoll   = "poll"
	byStream = "stream"
)

// waiting makes the gauges of who waits for events.
func waiting(r prometheus.Registerer) map[string]prometheus.Gauge {
	all := promauto.With(r).NewGaugeVec(prometheus.GaugeOpts{Name: "liveroom_events_readers",
		Help: "Readers that wait for events, or are streamed to; at most 256 of a node."}, []string{"way"})
	return map[string]prometheus.Gauge{byPoll: all.WithLabelValues(byPoll), byStream: all.WithLabelValues(byStream)}
}
