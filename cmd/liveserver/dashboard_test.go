package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestOperatorsQueriesHaveSeries: every metric that the alert rules, the dashboard and Kubernetes ask for is exported by a real
// server, or recorded by the rules.
func TestOperatorsQueriesHaveSeries(t *testing.T) {
	t.Parallel()
	s := startServer(t, "", "-hooks-secrets", walletSecret, "-webhooks", "[{name: books, url: 'http://127.0.0.1:1/'}]")
	res, err := http.Get(s.admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	exported := map[string]bool{}
	for _, line := range strings.Split(string(raw), "\n") {
		if !strings.HasPrefix(line, "#") {
			exported[regexp.MustCompile(`^[a-z_:0-9]*`).FindString(line)] = true
		}
		if name, ok := strings.CutPrefix(line, "# HELP "); ok { // a metric without samples yet is known all the same
			exported[strings.Fields(name)[0]] = true
		}
	}
	rules := readFile(t, "../../deploy/prometheus/liveroom.rules.yml")
	for _, m := range regexp.MustCompile(`record: (\S+)`).FindAllStringSubmatch(rules, -1) {
		exported[m[1]] = true
	}
	var dashboard any
	if err := json.Unmarshal([]byte(readFile(t, "../../deploy/grafana/liveroom.json")), &dashboard); err != nil {
		t.Fatal(err)
	}
	queries := exprs(dashboard)
	if len(queries) < 20 {
		t.Errorf("the dashboard has only %d queries", len(queries))
	}
	scaling := regexp.MustCompile(`metric: \{name: (\w+)\}`).FindAllString(readFile(t, "../../deploy/kubernetes/autoscale.yaml"), -1)
	if len(scaling) != 2 {
		t.Errorf("Kubernetes scales by %q", scaling)
	}
	name := regexp.MustCompile(`\b(liveroom[a-z_:0-9]*|process_[a-z_]+|go_[a-z_]+)\b`)
	for _, q := range slices.Concat(queries, scaling, []string{regexp.MustCompile(`#.*`).ReplaceAllString(rules, "")}) {
		for _, metric := range name.FindAllString(q, -1) {
			if strings.HasPrefix(metric, "liveroom-") || metric == "liveroom" || !strings.ContainsAny(metric, "_:") {
				continue // the name of a group
			}
			if base := strings.TrimSuffix(metric, "_bucket"); !exported[metric] && !exported[base] {
				t.Errorf("nothing exports %s, asked for in %.80s", metric, q)
			}
		}
	}
}

// exprs collects every expr of a dashboard.
func exprs(v any) (out []string) {
	switch v := v.(type) {
	case map[string]any:
		for k, child := range v {
			if text, ok := child.(string); ok && k == "expr" {
				out = append(out, text)
			} else {
				out = append(out, exprs(child)...)
			}
		}
	case []any:
		for _, child := range v {
			out = append(out, exprs(child)...)
		}
	}
	return out
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
