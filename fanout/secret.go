package fanout

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// clusterBucket holds what all nodes have in common and nobody configured.
const clusterBucket = "liveroom_cluster"

const clusterBytes = 1 << 20

// Secret returns the value that the nodes have agreed on under a name: the one offered first. It is stored with as many
// replicas as everything else, for ever; whoever may read the NATS servers' store may read it.
func (f *Fabric) Secret(ctx context.Context, name, offer string) (string, error) {
	ctx, cancel := f.storeContext(ctx)
	defer cancel()
	like, err := f.buckets.settings.Status(ctx)
	if err != nil {
		return "", fmt.Errorf("bucket %s: %w", settingsBucket, err)
	}
	kv, err := f.js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{
		Bucket: clusterBucket, Storage: jetstream.FileStorage, Replicas: like.Config().Replicas, History: 1, MaxBytes: clusterBytes,
	})
	if err != nil {
		return "", fmt.Errorf("bucket %s: %w", clusterBucket, err)
	}
	_, err = kv.Create(ctx, name, []byte(offer))
	if err == nil {
		return offer, nil
	}
	if !errors.Is(err, jetstream.ErrKeyExists) {
		return "", fmt.Errorf("offer %s to the other nodes: %w", name, err)
	}
	agreed, err := kv.Get(ctx, name)
	if err != nil {
		return "", fmt.Errorf("read the nodes' %s: %w", name, err)
	}
	return string(agreed.Value()), nil
}
