// Package deploy_test holds what is shipped for operators to its word.
package deploy_test

import (
	"os/exec"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
)

// TestAlertRules runs the alert rules' own tests: each alert has a case that fires and one that does not.
func TestAlertRules(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Fatal("promtool is missing: make promtool, or apt-get install prometheus")
	}
	for _, args := range [][]string{{"check", "rules", "liveroom.rules.yml"}, {"test", "rules", "liveroom.test.yml"}} {
		cmd := exec.CommandContext(t.Context(), promtool, args...)
		cmd.Dir = "prometheus"
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
	}
}

// TestNATSServersSync: what is shipped for NATS servers has on disk what it acknowledges, and forms a cluster of three.
func TestNATSServersSync(t *testing.T) {
	o, err := server.ProcessConfigFile("nats/nats.conf")
	if err != nil {
		t.Fatal(err)
	}
	if !o.JetStream || !o.SyncAlways || o.Cluster.Name == "" || len(o.Routes) != 2 {
		t.Errorf("jetstream %v, sync always %v, cluster %q with %d routes", o.JetStream, o.SyncAlways, o.Cluster.Name, len(o.Routes))
	}
}
