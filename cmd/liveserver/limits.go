package main

import (
	"errors"
	"os"

	"liveroom/internal/config"
	"liveroom/limit"
)

// loadRules reads and compiles the limit rules: the file's, or those that ship.
func loadRules(cfg config.Limits) (*limit.Rules, error) {
	spec := limit.Default()
	if cfg.File != "" {
		text, err := os.ReadFile(cfg.File)
		if err != nil {
			return nil, config.Fault{Path: "limits.file", Allowed: "a YAML file that can be read", Received: err.Error()}
		}
		if spec, err = limit.Parse(text); err != nil {
			return nil, ruleFaults(cfg.File, err)
		}
	}
	rules, err := spec.Compile()
	if err != nil {
		return nil, ruleFaults(cfg.File, err)
	}
	return rules, nil
}

// ruleFaults shows each fault of a rule set as one of the configuration.
func ruleFaults(file string, err error) error {
	var faults limit.Faults
	if !errors.As(err, &faults) {
		return config.Fault{Path: "limits.file", Source: "in " + file, Allowed: "a set of rules", Received: err.Error()}
	}
	out := make(config.Faults, len(faults))
	for i, f := range faults {
		out[i] = config.Fault{Path: "limits.file: " + f.Path, Source: "in " + file, Allowed: "a valid rule", Received: f.Problem}
	}
	return out
}
