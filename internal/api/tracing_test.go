package api

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"liveroom/internal/trace"
	"liveroom/limit"
	"liveroom/protocol"
	"liveroom/room"
)

// BenchmarkGift is a gift over the API into a ledger that takes no time: without a tracer, with one that only looks for what is slow, with
// spans of which none is kept, and with all kept.
func BenchmarkGift(b *testing.B) {
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	defer receiver.Close()
	for _, c := range []struct {
		name string
		cfg  *trace.Config
	}{{"untraced", nil}, {"off", &trace.Config{}}, {"unsampled", &trace.Config{Endpoint: receiver.URL}}, {"sampled", &trace.Config{Endpoint: receiver.URL, Sample: 1}}} {
		b.Run(c.name, func(b *testing.B) {
			var tracer *trace.Tracer
			if c.cfg != nil {
				c.cfg.Slow, c.cfg.Log, c.cfg.Service = time.Second, slog.New(slog.DiscardHandler), "s"
				var err error
				if tracer, err = trace.New(*c.cfg); err != nil {
					b.Fatal(err)
				}
				ran := make(chan struct{})
				go func() { defer close(ran); tracer.Run(b.Context()) }()
				b.Cleanup(func() { <-ran })
			}
			spec, err := limit.Parse([]byte("rules:\n  - {name: gifts, action: gift, scope: room, rate: 1000000, burst: 1000000}\n  - {name: calls, action: api, scope: key, rate: 1000000, burst: 1000000}\n"))
			if err != nil {
				b.Fatal(err)
			}
			rules, err := spec.Compile()
			if err != nil {
				b.Fatal(err)
			}
			w := newWorld(b, func(c *Config) { c.Trace = tracer; c.Gate.Swap(rules.WithVersion(c.Gate.Rules().Version() + 1)) }, func(c *room.Config) { c.Trace = tracer })
			bearer := "Bearer " + w.token(protocol.RoleService)
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				i++
				r := httptest.NewRequest(http.MethodPost, Prefix+"/rooms/demo/gifts", strings.NewReader(`{"user":{"id":"ann"},"gift":"rose","id":"`+strconv.Itoa(i)+`"}`))
				r.Header.Set("Authorization", bearer)
				rec := httptest.NewRecorder()
				if w.h.ServeHTTP(rec, r); rec.Code != http.StatusOK {
					b.Fatal(rec.Body)
				}
			}
		})
	}
}
