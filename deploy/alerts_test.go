package deploy_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

type ruleFile struct {
	Groups []struct {
		Rules []struct {
			Alert       string            `yaml:"alert"`
			Annotations map[string]string `yaml:"annotations"`
		} `yaml:"rules"`
	} `yaml:"groups"`
}

type testFile struct {
	Tests []struct {
		Alerts []struct {
			Name   string `yaml:"alertname"`
			Expect []any  `yaml:"exp_alerts"`
		} `yaml:"alert_rule_test"`
	} `yaml:"tests"`
}

func parse(t *testing.T, path string, into any) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(raw, into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// TestEveryAlertIsTestedAndExplained: a case that fires, one that does not, and lines in the runbook under its name.
func TestEveryAlertIsTestedAndExplained(t *testing.T) {
	var rules ruleFile
	var tests testFile
	parse(t, "prometheus/liveroom.rules.yml", &rules)
	parse(t, "prometheus/liveroom.test.yml", &tests)
	runbook, err := os.ReadFile("../docs/runbook.md")
	if err != nil {
		t.Fatal(err)
	}
	fires, quiet := map[string]bool{}, map[string]bool{}
	for _, c := range tests.Tests {
		for _, a := range c.Alerts {
			if len(a.Expect) > 0 {
				fires[a.Name] = true
			} else {
				quiet[a.Name] = true
			}
		}
	}
	alerts := 0
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			if r.Alert == "" {
				continue
			}
			alerts++
			if !fires[r.Alert] || !quiet[r.Alert] {
				t.Errorf("%s: fires in a test: %v, stays quiet in one: %v", r.Alert, fires[r.Alert], quiet[r.Alert])
			}
			if want := "docs/runbook.md#" + strings.ToLower(r.Alert); r.Annotations["runbook"] != want {
				t.Errorf("%s: runbook is %q, want %q", r.Alert, r.Annotations["runbook"], want)
			}
			if !strings.Contains(string(runbook), fmt.Sprintf("\n### %s\n", r.Alert)) {
				t.Errorf("%s: nothing in docs/runbook.md", r.Alert)
			}
		}
	}
	if alerts < 9 {
		t.Errorf("only %d alerts were found", alerts)
	}
}
