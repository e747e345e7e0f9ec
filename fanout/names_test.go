package fanout

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestMetricsPassTheLinter(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewPedanticRegistry()
	open(t, Config{NodeID: "n1", DataDir: t.TempDir(), Metrics: reg})
	faults, err := testutil.GatherAndLint(reg)
	if err != nil || len(faults) > 0 {
		t.Error(faults, err)
	}
	if n, err := testutil.GatherAndCount(reg); err != nil || n < 20 {
		t.Errorf("%d series at zero, %v", n, err)
	}
}
