package main

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
)

// scrape reads the metrics.
func (s *server) scrape(t *testing.T) []byte {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, s.admin+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept-Encoding", "identity") // packing it costs more than gathering it
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != 200 {
		t.Fatalf("metrics: %d %v", res.StatusCode, err)
	}
	return b
}

// metric returns the value of one series, written as in the exposition; -1 when it is not there.
func (s *server) metric(t *testing.T, series string) float64 {
	t.Helper()
	lines := bufio.NewScanner(bytes.NewReader(s.scrape(t)))
	for lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), series+" "); ok {
			v, err := strconv.ParseFloat(rest, 64)
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
	}
	return -1
}

// TestMetrics: the names that alerts and checks rely on are there from the start, lint finds nothing, and they count.
func TestMetrics(t *testing.T) {
	t.Parallel()
	s := startServer(t, "")
	text := string(s.scrape(t))
	for _, series := range []string{
		"liveroom_sessions ", "liveroom_rooms ",
		`liveroom_messages_total{class="danmaku"}`, `liveroom_messages_total{class="gift"}`, `liveroom_messages_total{class="like"}`, `liveroom_messages_total{class="control"}`,
		`liveroom_deliveries_total{class="danmaku"}`, "liveroom_frames_total ", "liveroom_sent_bytes_total ",
		`liveroom_deflate_bytes_total{form="in"}`, `liveroom_deflate_bytes_total{form="out"}`, "liveroom_deflate_sessions ",
		`liveroom_dropped_total{class="danmaku",reason="slow"}`, `liveroom_closes_total{code="4001"}`, `liveroom_closes_total{code="1001"}`,
		`liveroom_limit_decisions_total{action="danmaku",outcome="reject",rule="danmaku-user-room",scope="user_room"}`,
		"liveroom_limit_seconds_bucket", `liveroom_http_request_seconds_count{code="2xx",route="GET /rooms/{room}"} 0`, `liveroom_redis_calls_total{op="room",result="ok"}`, `liveroom_quota_tokens_total{event="granted"}`,
		`liveroom_breaker_state{dependency="redis"}`, `liveroom_degraded_seconds_total{dependency="nats"}`,
		"liveroom_rules_version ", `liveroom_rules_loads_total{result="ok"}`, "liveroom_delivery_seconds_bucket",
		`liveroom_dropped_total{class="danmaku",reason="overload"}`, `liveroom_overload{stage="ticks"}`, "liveroom_lag_seconds ", "liveroom_tick_seconds ",
	} {
		if !strings.Contains(text, "\n"+series) {
			t.Errorf("no series %s", series)
		}
	}
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("lint: %s: %s", p.Metric, p.Text)
	}

	c := join(t, s.url, "demo", "")
	c.ask("danmaku", `,"text":"counted"`)
	c.wait("danmaku", func(e event) bool { return e.kind() == "danmaku" })
	s.call(t, http.MethodGet, "/rooms/demo", "", "")
	s.call(t, http.MethodGet, "/rooms/-/", "", "")
	s.call(t, http.MethodPost, "/limits/rollback", "", "{}")
	for series, want := range map[string]float64{
		`liveroom_http_request_seconds_count{code="2xx",route="GET /rooms/{room}"}`: 1, `liveroom_http_request_seconds_count{code="4xx",route="other"}`: 1,
		`liveroom_http_request_seconds_count{code="4xx",route="POST /limits/rollback"}`: 1,

		"liveroom_sessions": 1, "liveroom_rooms": 1, `liveroom_messages_total{class="danmaku"}`: 1, `liveroom_deliveries_total{class="danmaku"}`: 1,
		`liveroom_limit_decisions_total{action="danmaku",outcome="allow",rule="danmaku-user-room",scope="user_room"}`: 1,
	} {
		if got := s.metric(t, series); got != want {
			t.Errorf("%s is %v, want %v", series, got, want)
		}
	}
}
