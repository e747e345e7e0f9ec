package trace

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// made is a tracer whose spans go to endpoint; its log is JSON in the buffer.
func made(t *testing.T, endpoint string, slow time.Duration) (*Tracer, *bytes.Buffer) {
	t.Helper()
	log := &bytes.Buffer{}
	tracer, err := New(Config{Endpoint: endpoint, Sample: 1, Service: "s", Slow: slow, Log: slog.New(Logs(slog.NewJSONHandler(log, nil))), Metrics: prometheus.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	return tracer, log
}

func (t *Tracer) spans(result string) int { return int(testutil.ToFloat64(t.export.count[result])) }

// some ends n operations.
func (t *Tracer) some(n int) {
	for range n {
		_, op := t.Begin(context.Background(), Hook, "ping", "hook_gift")
		op.End(nil)
	}
}

// TestAReceiverThatTakesNothing costs nobody anything: beyond what is queued, spans are dropped and counted, no operation waits, and the
// end comes when it is told to.
func TestAReceiverThatTakesNothing(t *testing.T) {
	t.Parallel()
	came, release := make(chan struct{}, 100), make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		came <- struct{}{}
		<-release
	}))
	defer slow.Close()
	defer close(release)
	tracer, _ := made(t, slow.URL, 0)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); tracer.Run(ctx) }()
	tracer.some(batchMost)
	<-came
	tracer.some(queued + 1000)
	if n := tracer.spans(spansDropped); n != 1000 {
		t.Errorf("%d dropped, want 1000", n)
	}
	cancel()
	<-ended
	last, done := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer done()
	if err := tracer.Close(last); err != nil {
		t.Error(err)
	}
	if sent, failed, dropped := tracer.spans(spansSent), tracer.spans(spansFailed), tracer.spans(spansDropped); sent != 0 || failed != 2*batchMost || failed+dropped != batchMost+queued+1000 {
		t.Errorf("%d sent, %d failed, %d dropped", sent, failed, dropped)
	}
	tracer.export.to.Shutdown(t.Context())
}

// TestAReceiverThatComesBack is told of once, with its status and without its answer; what waits at the end is sent.
func TestAReceiverThatComesBack(t *testing.T) {
	t.Parallel()
	var up atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !up.Load() {
			http.Error(w, "nobody is to read this", http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	tracer, log := made(t, server.URL, 0)
	for range 3 {
		tracer.some(10)
		_ = tracer.Close(t.Context())
	}
	up.Store(true)
	tracer.some(batchMost + 10)
	_ = tracer.Close(t.Context())
	if sent, failed := tracer.spans(spansSent), tracer.spans(spansFailed); sent != batchMost+10 || failed != 30 {
		t.Errorf("%d sent, %d failed", sent, failed)
	}
	if text := log.String(); strings.Count(text, "takes none") != 1 || strings.Count(text, "HTTP status 503") != 1 || strings.Count(text, "is back") != 1 || strings.Contains(text, "to read this") {
		t.Errorf("log:\n%s", text)
	}
	tracer.export.to.Shutdown(t.Context())
}

// TestOffCostsNothing, neither memory nor, without a threshold, a look at a clock.
func TestOffCostsNothing(t *testing.T) {
	off, _ := made(t, "", time.Second)
	var none *Tracer
	for name, tracer := range map[string]*Tracer{"nil": none, "off": off} {
		if n := testing.AllocsPerRun(100, func() {
			ctx, op := tracer.Begin(context.Background(), Gift, "give", "r")
			_ = Mark(ctx)
			op.Result("ok")
			op.End(nil)
			tracer.Took(Tick, "flush", "r", time.Millisecond)
		}); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// TestSlowOperations: one line a second for each kind, the next says how many were left out, and all are counted. What waits for
// something to come is never slow.
func TestSlowOperations(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tracer, log := made(t, "", 100*time.Millisecond)
		op := func(k Kind, takes time.Duration) {
			_, o := tracer.Begin(t.Context(), k, "what", "place")
			if k == API {
				o.Waits()
			}
			time.Sleep(takes)
			o.End(errors.New("not told"))
		}
		op(Store, 99*time.Millisecond)
		for range 5 {
			op(Store, 150*time.Millisecond)
		}
		op(Hook, 100*time.Millisecond)
		op(API, time.Hour)
		tracer.Took(Tick, "flush", "r", 100*time.Millisecond)
		op(Store, 200*time.Millisecond)
		var told []string
		for line := range strings.Lines(log.String()) {
			var l map[string]any
			if err := json.Unmarshal([]byte(line), &l); err != nil {
				t.Fatal(err)
			}
			delete(l, "time")
			b, _ := json.Marshal(l)
			told = append(told, string(b))
		}
		want := []string{
			`{"kind":"store","level":"WARN","msg":"slow operation","seconds":0.15,"store":"place","what":"what"}`,
			`{"hook":"place","kind":"hook","level":"WARN","msg":"slow operation","seconds":0.1,"what":"what"}`,
			`{"kind":"tick","level":"WARN","msg":"slow operation","room":"r","seconds":0.1,"what":"flush"}`,
			`{"kind":"store","left_out":4,"level":"WARN","msg":"slow operation","seconds":0.2,"store":"place","what":"what"}`,
		}
		if strings.Join(told, "\n") != strings.Join(want, "\n") {
			t.Errorf("told:\n%s", strings.Join(told, "\n"))
		}
		if n := testutil.ToFloat64(tracer.slow.count[Store]); n != 6 {
			t.Errorf("%v counted", n)
		}
	})
}

// TestMarks: a trace goes on where its mark is resumed, by another node too, and what is no mark is nobody's trace.
func TestMarks(t *testing.T) {
	t.Parallel()
	tracer, _ := made(t, "http://127.0.0.1:1", 0)
	ctx, op := tracer.Begin(t.Context(), Gift, "give", "r")
	op.End(nil)
	mark := Mark(ctx)
	h := http.Header{}
	Tell(Resume(t.Context(), mark), h)
	if h.Get("traceparent") != mark || len(mark) != 55 {
		t.Errorf("resumed as %v of %q", h, mark)
	}
	for _, bad := range []string{"", "00-1", strings.Repeat("0", 55), mark + "x"} {
		if Mark(Resume(t.Context(), bad)) != "" {
			t.Errorf("%q is a trace", bad)
		}
	}
	if _, part := tracer.Begin(t.Context(), Store, "read", "s"); part.span != nil {
		t.Error("a part of nothing is a span")
	}
}

func TestEndpoints(t *testing.T) {
	t.Parallel()
	for endpoint, want := range map[string]string{
		"http://localhost:4318": "http://localhost:4318/v1/traces", "https://a.example/": "https://a.example/v1/traces", "https://a.example/otlp": "https://a.example/otlp",
		"localhost:4318": "", "ftp://a": "", "http://": "", "http://u:p@a": "", "http://a?key=1": "", "http://a#b": "", "http://a b": "",
	} {
		r, err := newReceiver(endpoint, nil)
		if got := ""; err == nil {
			if got = r.url; got != want {
				t.Errorf("%s: %s, want %q", endpoint, got, want)
			}
		} else if want != "" || !errors.Is(err, errEndpoint) || strings.Contains(err.Error(), "a b") {
			t.Errorf("%s: %v", endpoint, err)
		}
	}
}
