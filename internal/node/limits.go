package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/prometheus/client_golang/prometheus"

	"liveroom/fanout"
	"liveroom/internal/config"
	"liveroom/internal/rulebook"
	"liveroom/limit"
)

// loadRules reads the limit rules of the configuration, the file's or those that ship, and checks them whole.
func loadRules(cfg config.Limits) (*limit.Spec, error) {
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
	if _, err := spec.Compile(); err != nil {
		return nil, ruleFaults(cfg.File, err)
	}
	if faults := checkAskable(spec.Rules); len(faults) > 0 {
		return nil, ruleFaults(cfg.File, faults)
	}
	return spec, nil
}

// ruleStore lets the rule book keep its sets in the fabric.
type ruleStore struct{ *fanout.Fabric }

var _ rulebook.Store = ruleStore{}

// Publish implements [rulebook.Store].
func (s ruleStore) Publish(ctx context.Context, payload []byte, after uint64) (uint64, error) {
	version, err := s.PublishRules(ctx, payload, after)
	if errors.Is(err, fanout.ErrConflict) {
		return 0, fmt.Errorf("%w: %w", rulebook.ErrConflict, err)
	}
	return version, err
}

// History implements [rulebook.Store].
func (s ruleStore) History(ctx context.Context, before uint64, limit int) ([]rulebook.Record, error) {
	stored, err := s.RulesHistory(ctx, before, limit)
	records := make([]rulebook.Record, len(stored))
	for i, r := range stored {
		records[i] = rulebook.Record(r)
	}
	return records, err
}

// Follow implements [rulebook.Store].
func (s ruleStore) Follow(h func(rulebook.Record)) (stop func(), err error) {
	return s.FollowRules(func(r fanout.RulesRecord) { h(rulebook.Record(r)) })
}

// keptRules is the copy of the last good set, in the data directory.
const keptRules = "limits.json"

// openBook puts the limits in force that the store has, or the file.
func (n *Node) openBook(ctx context.Context, seed *limit.Spec, reg prometheus.Registerer) (err error) {
	cfg := rulebook.Config{
		Gate: n.gate, Seed: seed, File: n.cfg.Limits.File, Log: n.log, Metrics: rulebook.NewMetrics(reg),
		Check: checkAskable, Judge: n.judge, Published: n.published,
	}
	if n.cfg.Limits.Source == config.SourceCluster {
		cfg.Store, cfg.Keep = ruleStore{n.fabric}, filepath.Join(n.cfg.DataDir, keptRules)
	}
	n.book, err = rulebook.Open(ctx, cfg)
	return err
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
