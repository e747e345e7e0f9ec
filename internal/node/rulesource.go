package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"liveroom/internal/config"
	"liveroom/internal/edition"
	"liveroom/internal/rulebook"
	"liveroom/limit"
	"liveroom/protocol"
	"liveroom/room"
)

// loadRules reads the limit rules of the configuration, the file's or those that ship, and checks them whole.
func loadRules(cfg config.Limits) (spec *limit.Spec, rules *limit.Rules, err error) {
	spec = limit.Default()
	if cfg.File != "" {
		text, err := os.ReadFile(cfg.File)
		if err != nil {
			return nil, nil, config.Fault{Path: "limits.file", Allowed: "a YAML file that can be read", Received: err.Error()}
		}
		if spec, err = limit.Parse(text); err != nil {
			return nil, nil, ruleFaults(cfg.File, err)
		}
	}
	if rules, err = spec.Compile(); err != nil {
		return nil, nil, ruleFaults(cfg.File, err)
	}
	if faults := checkAskable(spec.Rules); len(faults) > 0 {
		return nil, nil, ruleFaults(cfg.File, faults)
	}
	return spec, rules, nil
}

// keptRules is the copy of the last good set, in the data directory.
const keptRules = "limits.json"

// openBook puts the limits in force that the store has, or the file.
func (n *Node) openBook(ctx context.Context, seed *limit.Spec, reg prometheus.Registerer) (err error) {
	n.changes = newChanges(n, reg)
	cfg := rulebook.Config{
		Gate: n.gate, Seed: seed, File: n.cfg.Limits.File, Log: n.log, Metrics: edition.NewMetrics(reg, "rules"), Node: n.cfg.NodeID, Review: n.changes,
	}
	if n.cfg.Limits.Source == config.SourceCluster {
		cfg.Store, cfg.Keep = ruleStore{editions{n.fabric.Store.Rules}, n.fabric.Store.Audit}, filepath.Join(n.cfg.DataDir, keptRules)
	}
	if n.changes.Book, err = rulebook.Open(ctx, cfg); err != nil {
		return err
	}
	n.closers.add("close the book of limits", 0, func(context.Context) error { n.changes.Close(); return nil })
	return nil
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

// askable lists, for the actions that this server asks few scopes about, which those are. A rule for another scope would
// never be asked, and its author would never learn it.
var askable = map[string][]string{
	limit.Frame.String():   {limit.ScopeConn.String()},
	limit.Connect.String(): {limit.ScopeIP.String(), limit.ScopeNet.String()},
}

// unpaced lists the actions that this server answers at once, so that a leaky bucket would pace nothing.
var unpaced = []string{limit.Frame.String(), limit.Connect.String(), limit.Join.String()}

// Check implements [rulebook.Review].
func (c *changes) Check(rules []limit.Rule) limit.Faults { return checkAskable(rules) }

// shared lists the actions of which a network has its share in each room: those of somebody who is in it.
func shared() (names []string) {
	for _, a := range limit.Messages() {
		names = append(names, a.String())
	}
	return names
}

// checkAskable returns a fault for each rule, or part of one, that this server would never ask or could not obey, and for
// a set of none: an
// empty body or a file cut short must not lift every limit in the middle of a show.
func checkAskable(rules []limit.Rule) limit.Faults {
	var faults limit.Faults
	if len(rules) == 0 {
		faults = append(faults, limit.Fault{Path: "rules", Problem: "want at least one rule"})
	}
	for i, r := range rules {
		fault := func(path, format string, args ...any) {
			faults = append(faults, limit.Fault{Path: fmt.Sprintf("rules[%d].%s", i, path), Problem: fmt.Sprintf(format, args...)})
		}
		for _, action := range r.Action {
			if scopes, few := askable[action]; few && !slices.Contains(scopes, r.Scope) {
				fault("scope", "%q is never asked about %s; want %s", r.Scope, action, strings.Join(scopes, " or "))
			}
			if _, few := askable[action]; !few && r.Scope == limit.ScopeNetRoom.String() && !slices.Contains(shared(), action) {
				fault("scope", "%q is never asked about %s, only about %s", r.Scope, action, strings.Join(shared(), ", "))
			}
			if action == limit.Frame.String() && r.Algorithm == "concurrency" {
				fault("algorithm", "a frame is over at once, slots would bound nothing; take token_bucket")
			}
			for _, key := range unknownTo(action, &r) {
				fault(key, "who connects, and for a frame the room, is not known then; a rule about it would never be asked")
			}
			if r.LongestDelay() > 0 && slices.Contains(unpaced, action) {
				fault("algorithm", "%s is answered at once, a leaky_bucket would pace nothing; take token_bucket", action)
			}
		}
		if d := r.LongestDelay(); d > room.LongestDelay {
			fault("burst", "would hold a message back for up to %v; want at most %v: a smaller burst or a higher rate", d, room.LongestDelay)
		}
		if id := strings.ReplaceAll(r.Room, "*", "x"); id != "" && protocol.CheckRoom("room", id) != nil {
			fault("room", "no room is called that; want letters, digits, _, -, and * for any of them, have %.80q", r.Room)
		}
		for j, role := range r.Role {
			checkRole(fault, fmt.Sprintf("role[%d]", j), role)
		}
		for j, role := range r.Exempt.Roles {
			checkRole(fault, fmt.Sprintf("exempt.roles[%d]", j), role)
		}
		for _, role := range slices.Sorted(maps.Keys(r.Multiply)) {
			checkRole(fault, "multiply."+role, role)
		}
	}
	return faults
}

// unknownTo lists the keys of a rule that tell apart what this server does not know when it asks about the action: nobody has
// said who connects, and a connection's frames are counted before they are read.
func unknownTo(action string, r *limit.Rule) []string {
	var keys []string
	note := func(has bool, key string) {
		if has {
			keys = append(keys, key)
		}
	}
	switch action {
	case limit.Connect.String():
		note(len(r.Role) > 0, "role")
		note(len(r.Multiply) > 0, "multiply")
		note(len(r.Exempt.Roles) > 0, "exempt.roles")
		note(len(r.Exempt.Users) > 0, "exempt.users")
		fallthrough
	case limit.Frame.String():
		note(r.Room != "", "room")
		note(len(r.Where) > 0, "where")
	case limit.API.String():
		note(len(r.Where) > 0, "where")
	}
	if strings.HasPrefix(action, "api:") {
		note(len(r.Where) > 0, "where")
	}
	return keys
}

// checkRole finds fault with a role that nobody has.
func checkRole(fault func(path, format string, args ...any), path, role string) {
	if !protocol.ValidRole(protocol.Role(role)) {
		fault(path, "nobody has that role; want viewer, host, moderator, service or admin, have %.40q", role)
	}
}
