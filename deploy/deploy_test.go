// Package deploy_test holds what is shipped for operators to its word.
package deploy_test

import (
	"os/exec"
	"testing"
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
