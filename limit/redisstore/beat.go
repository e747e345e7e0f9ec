package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"liveroom/limit"
	"liveroom/limit/cluster"
)

var errReplica = errors.New("redisstore: the server is a replica")

// Beat asks a server who it is: its run's id, which a restart changes, and its
// replication id, which a fail-over changes. A server that is a replica now, or
// that does not carry out a script that writes, is an error.
func (s *Store) Beat(ctx context.Context, shard string) (string, error) {
	type result struct {
		life string
		err  error
	}
	done := make(chan result, 1)
	if !s.start(func() {
		life, err := s.beat(ctx, shard)
		done <- result{life, err}
	}) {
		return "", ErrClosed
	}
	select {
	case r := <-done:
		return r.life, r.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

func (s *Store) beat(ctx context.Context, shard string) (string, error) {
	l := s.link.Load()
	client, err := l.server(ctx, shard)
	if err != nil {
		return "", err
	}
	pipe := client.Pipeline()
	server, replication := pipe.Info(ctx, "server"), pipe.Info(ctx, "replication")
	probe := s.probe(l.keyOf(shard))
	probe.queue(ctx, pipe)
	_, _ = pipe.Exec(ctx) // each command has its own error
	if err := errors.Join(server.Err(), replication.Err()); err != nil {
		l.suspect(ctx)
		return "", err
	}
	if infoField(replication, "role") != "master" {
		s.renew(l)
		l.suspect(ctx)
		return "", errReplica
	}
	run, id := infoField(server, "run_id"), infoField(replication, "master_replid")
	if run == "" {
		return "", fmt.Errorf("redisstore: %s does not say its run_id", shard)
	}
	if probe.read(); redis.HasErrorPrefix(probe.err, "NOSCRIPT") {
		exchange(ctx, client, []*answer{probe})
	}
	if probe.err != nil && probe.err != cluster.ErrStale { // a probe that was overtaken reached the script
		return "", probe.err
	}
	return run + "/" + id, nil
}

// probe is a call that writes as a draw does, by the same script: a server that
// answers and does not write serves nobody.
func (s *Store) probe(key string) *answer {
	c := cluster.Call{
		Op: cluster.OpDraw, Key: "lr:{" + key + "}:probe", Node: s.name, Seq: s.probes.Add(1), Stay: true,
		Tiers: probeTerms, Ask: 1, Least: 1, Lease: time.Second,
	}
	return &answer{key: c.Key, blob: appendCall(make([]byte, 0, 192), &c), script: &s.scripts[limit.KindBucket]}
}

// probeTerms are those of a bucket that is never empty.
var probeTerms = []limit.Terms{{Kind: limit.KindBucket, Size: 1 << 20, Start: 1 << 20, Num: 1, Den: 1}}

// infoField returns a line's value of an INFO answer.
func infoField(info *redis.StringCmd, name string) string {
	for line := range strings.Lines(info.Val()) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
