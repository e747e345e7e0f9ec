package model

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"liveroom/limit"
	"liveroom/limit/cluster"
)

// leased is the engine under test: a Gate with a Cluster, as a server has it.
type leased struct {
	gate    *limit.Gate
	cluster *cluster.Cluster
	node    *Node

	mu       sync.Mutex
	subjects map[int]*limit.Subject
}

func newLeased(n *Node, rules *limit.Rules) *leased {
	q := &leased{gate: limit.NewGate(rules, n.now), node: n, subjects: map[int]*limit.Subject{}}
	cluster, err := cluster.New(cluster.Config{
		Store: &store{link: n.link, servers: n.world.servers},
		Node:  n.name(),
		Peers: peers{n},
		Clock: n.now,
		Log:   slog.New(outageLog{n.world}),
		Rand:  newStream(n.world.scenario.Seed, purposeNode, n.nth).int64N,
	})
	if err != nil {
		panic(err)
	}
	q.cluster = cluster
	q.gate.Share(cluster)
	return q
}

func (n *Node) name() string { return "n" + strconv.Itoa(n.number) }

// byName returns the node of that name, the latest process when it was started
// again.
func (w *World) byName(name string) *Node {
	nodes := w.nodesNow()
	for i := len(nodes) - 1; i >= 0; i-- {
		if nodes[i].name() == name {
			return nodes[i]
		}
	}
	return nil
}

// subject returns the buckets of a subject at this node.
func (q *leased) subject(number int) *limit.Subject {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.subjects[number]
	if s == nil {
		s = &limit.Subject{Scope: q.node.world.scenario.Scope}
		q.subjects[number] = s
	}
	return s
}

func (q *leased) admit(number int, cost int64) (limit.Instant, bool) {
	request := limit.Request{
		Action: limit.Danmaku,
		Cost:   cost,
		Room:   fmt.Sprintf("r%d", number),
		User:   fmt.Sprintf("u%d", number),
	}
	d := q.gate.Decide(q.node.now(), &request, q.subject(number))
	return d.At, d.Verdict == limit.Allow
}

func (q *leased) close(ctx context.Context) { _ = q.cluster.Close(ctx) }

// outageLog counts the outages that nodes believe to see: each begins with a
// warning.
type outageLog struct{ world *World }

func (o outageLog) Enabled(context.Context, slog.Level) bool { return true }
func (o outageLog) WithAttrs([]slog.Attr) slog.Handler       { return o }
func (o outageLog) WithGroup(string) slog.Handler            { return o }

func (o outageLog) Handle(_ context.Context, r slog.Record) error {
	o.world.mu.Lock()
	defer o.world.mu.Unlock()
	if r.Level == slog.LevelWarn {
		o.world.outages = append(o.world.outages, time.Since(o.world.start))
	}
	return nil
}
