package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"liveroom/fanout/link"
	"liveroom/internal/lock"
)

// Secrets are what the nodes have agreed on.
type Secrets struct {
	*core

	mu    lock.Mutex[lock.Leaf]
	known map[string]string // guarded by mu
}

// Secret returns the value that the nodes have agreed on under a name: the one offered first. It is stored with as many
// replicas as everything else, for ever; whoever may read the NATS servers' store may read
// it. A store that comes back empty is told it again.
func (c *Secrets) Secret(ctx context.Context, name, offer string) (string, error) {
	ctx, cancel := c.link.Bounded(ctx)
	defer cancel()
	agreed, err := c.agree(ctx, name, offer)
	if err == nil {
		c.mu.Lock()
		c.known[name] = agreed
		c.mu.Unlock()
	}
	return agreed, err
}

func (c *Secrets) agree(ctx context.Context, name, offer string) (string, error) {
	_, err := c.buckets.cluster.Create(ctx, name, []byte(offer))
	if err == nil {
		return offer, nil
	}
	if !errors.Is(err, jetstream.ErrKeyExists) {
		return "", fmt.Errorf("offer %s to the other nodes: %w", name, err)
	}
	agreed, err := c.buckets.cluster.Get(ctx, name)
	if err != nil {
		return "", fmt.Errorf("read the nodes' %s: %w", name, err)
	}
	return string(agreed.Value()), nil
}

// follow compares what this node goes by with what the nodes have agreed on, which is another value when all that knew
// it were away while the store was lost.
func (c *Secrets) follow() *link.Follower {
	agreed, prefix := map[string]string{}, link.BucketPrefix(link.ClusterBucket)
	r := &link.Reader{Link: c.link, Stream: clusterStream, Subject: prefix + ">", Take: func(m link.Record) {
		agreed[strings.TrimPrefix(m.Subject, prefix)] = string(m.Data)
	}}
	return c.link.Follow(link.FollowSecrets, func(ctx context.Context) error {
		if err := r.Read(ctx); err != nil {
			return err
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		for name, own := range c.known {
			if agreed[name] != own {
				return fmt.Errorf("the nodes have agreed on another secret for %s; restart this node", name)
			}
		}
		return nil
	})
}

// restore tells a store that came back empty what this node goes by.
func (c *Secrets) restore(ctx context.Context) error {
	c.mu.Lock()
	known := maps.Clone(c.known)
	c.mu.Unlock()
	for name, value := range known {
		agreed, err := c.agree(ctx, name, value)
		if err != nil {
			return err
		}
		if agreed != value {
			c.log.Error("the nodes have agreed on another secret; restart this node", "name", name)
		}
	}
	return nil
}
