package fanout

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
)

// Secret returns the value that the nodes have agreed on under a name: the one offered first. It is stored with as many
// replicas as everything else, for ever; whoever may read the NATS servers' store may read
// it. A store that comes back empty is told it again.
func (f *Fabric) Secret(ctx context.Context, name, offer string) (string, error) {
	ctx, cancel := f.storeContext(ctx)
	defer cancel()
	agreed, err := f.agree(ctx, name, offer)
	if err == nil {
		f.mu.Lock()
		f.secrets[name] = agreed
		f.mu.Unlock()
	}
	return agreed, err
}

func (f *Fabric) agree(ctx context.Context, name, offer string) (string, error) {
	_, err := f.buckets.cluster.Create(ctx, name, []byte(offer))
	if err == nil {
		return offer, nil
	}
	if !errors.Is(err, jetstream.ErrKeyExists) {
		return "", fmt.Errorf("offer %s to the other nodes: %w", name, err)
	}
	agreed, err := f.buckets.cluster.Get(ctx, name)
	if err != nil {
		return "", fmt.Errorf("read the nodes' %s: %w", name, err)
	}
	return string(agreed.Value()), nil
}

// followSecrets compares what this node goes by with what the nodes have agreed on, which is another value when all that knew
// it were away while the store was lost.
func (f *Fabric) followSecrets() *follower {
	agreed := map[string]string{}
	r := &reader{f: f, stream: clusterStream, subject: "$KV." + clusterBucket + ".>", take: func(m record) {
		agreed[strings.TrimPrefix(m.Subject, "$KV."+clusterBucket+".")] = string(m.Data)
	}}
	return f.lookOften(FollowSecrets, func(ctx context.Context) error {
		if err := r.read(ctx); err != nil {
			return err
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		for name, own := range f.secrets {
			if agreed[name] != own {
				return fmt.Errorf("the nodes have agreed on another secret for %s; restart this node", name)
			}
		}
		return nil
	})
}
