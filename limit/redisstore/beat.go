package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

var errReplica = errors.New("redisstore: the server is a replica")

// Beat asks a server who it is: its run's id, which a restart changes, and its
// replication id, which a fail-over changes. A server that is a replica now is an
// error.
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
	if _, err := pipe.Exec(ctx); err != nil {
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
	return run + "/" + id, nil
}

// infoField returns a line's value of an INFO answer.
func infoField(info *redis.StringCmd, name string) string {
	for line := range strings.Lines(info.Val()) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
