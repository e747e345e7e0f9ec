package conn

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"liveroom/protocol"
)

func TestMetricsFollowTheConventions(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := NewMetrics(reg)
	problems, err := testutil.GatherAndLint(reg)
	if err != nil || len(problems) > 0 {
		t.Fatalf("%v, %v", problems, err)
	}
	n := startNode(t, Config{Metrics: m}, newLobby())
	ws, s := n.join(t)
	s.Deliver(tickOf(3, 1, 9))
	receive(t, ws)
	got := map[protocol.Class]int{protocol.ClassControl: 1, protocol.ClassDanmaku: 3, protocol.ClassGift: 1, protocol.ClassLike: 1}
	var deliveries []string // every class is there at zero
	for c := range protocol.NumClasses {
		deliveries = append(deliveries, fmt.Sprintf(`liveroom_deliveries_total{class=%q} %d`, c.Kind().Name, got[c]))
	}
	slices.Sort(deliveries)
	want := `
# HELP liveroom_closes_total Ended sessions by close code; 1006 stands for those without a close frame.
# TYPE liveroom_closes_total counter
liveroom_closes_total{code="1000"} 0
liveroom_closes_total{code="1001"} 0
liveroom_closes_total{code="1002"} 0
liveroom_closes_total{code="1006"} 0
liveroom_closes_total{code="1007"} 0
liveroom_closes_total{code="1008"} 0
liveroom_closes_total{code="1009"} 0
liveroom_closes_total{code="1011"} 0
liveroom_closes_total{code="4001"} 0
liveroom_closes_total{code="4002"} 0
liveroom_closes_total{code="4003"} 0
liveroom_closes_total{code="4004"} 0
liveroom_closes_total{code="4005"} 0
liveroom_closes_total{code="4401"} 0
liveroom_closes_total{code="4403"} 0
liveroom_closes_total{code="4404"} 0
liveroom_closes_total{code="other"} 0
# HELP liveroom_deliveries_total Messages handed to viewers' sockets.
# TYPE liveroom_deliveries_total counter
` + strings.Join(deliveries, "\n") + `
# HELP liveroom_frames_total Data frames handed to viewers' sockets.
# TYPE liveroom_frames_total counter
liveroom_frames_total 2
# HELP liveroom_sessions Open sessions, those that have not said hello yet included.
# TYPE liveroom_sessions gauge
liveroom_sessions 1
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "liveroom_closes_total", "liveroom_deliveries_total",
		"liveroom_frames_total", "liveroom_sessions"); err != nil {
		t.Error(err)
	}
	if got, err := testutil.GatherAndCount(reg, "liveroom_dropped_total"); err != nil || got != int(protocol.NumClasses)*int(numDropReasons) {
		t.Errorf("%d series of drops", got)
	}
	s.Close(protocol.Refusal{Code: protocol.CloseKicked})
	closeOf(t, ws)
	n.running.Wait()
	if got := closes(n, "4004"); got != 1 || testutil.ToFloat64(n.cfg.Metrics.sessions) != 0 {
		t.Errorf("%d closes, %v sessions", got, testutil.ToFloat64(n.cfg.Metrics.sessions))
	}
}
