package main

import (
	_ "embed"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v4"

	"liveroom/loadtest/internal/client"
)

// The rule sets that come along, for nodes that this tool starts.
var (
	//go:embed rules/bench.yaml
	benchRules []byte
	//go:embed rules/pulse.yaml
	pulseRules []byte
	//go:embed rules/quota.yaml
	quotaTemplate []byte
)

// ruleSet is what this tool reads of a rule file: enough to know the bound it can check.
type ruleSet struct {
	Rules []struct {
		Action any    `yaml:"action"`
		Scope  string `yaml:"scope"`
		Room   string `yaml:"room"`
		Rate   int64  `yaml:"rate"`
		Burst  int64  `yaml:"burst"`
		Tiers  []struct {
			Below int64 `yaml:"below"`
			Rate  int64 `yaml:"rate"`
			Burst int64 `yaml:"burst"`
		} `yaml:"tiers"`
	} `yaml:"rules"`
}

// danmakuBound finds the room's danmaku quota for an audience in a rule file, the zero bound when there is none.
func danmakuBound(file []byte, audience int) (bound, error) {
	var set ruleSet
	if err := yaml.Unmarshal(file, &set); err != nil {
		return bound{}, fmt.Errorf("rules: %w", err)
	}
	for _, r := range set.Rules {
		if r.Scope != "room" || r.Room != "" || !slices.Contains(names(r.Action), client.Danmaku.String()) {
			continue
		}
		for _, t := range r.Tiers {
			if t.Below == 0 || int64(audience) < t.Below {
				return bound{t.Rate, t.Burst}, nil
			}
		}
		return bound{r.Rate, r.Burst}, nil
	}
	return bound{}, nil
}

// names reads a string or a list of them.
func names(v any) []string {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		var out []string
		for _, x := range v {
			out = append(out, fmt.Sprint(x))
		}
		return out
	}
	return nil
}
