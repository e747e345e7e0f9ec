package store

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/nats-io/nats.go/jetstream"

	"liveroom/fanout/link"
)

const (
	// groupLeast is how many writes a batch is worth: it costs seven syncs, each write alone one.
	groupLeast = 12
	// groupParts is how many a group is cut into that has a write in it which keeps out all of it.
	groupParts = 8
)

// inGroups has the writes of a road stored in groups, by the embedded server. A group is an atomic batch (NATS ADR-50), which the
// server syncs as one. Servers of others share the syncs of replicas by themselves.
func (c *core) inGroups(road link.Road, known func([]*write)) *groups {
	return newGroups(c.cfg.StoreTimeout, func(ctx context.Context, group []*write) {
		c.storeGroup(ctx, road, group, groupParts)
	}, known)
}

// storeGroup stores a group, and says of each what became of it. It may be cut into parts, if more than one.
func (c *core) storeGroup(ctx context.Context, road link.Road, group []*write, parts int) {
	if len(group) < groupLeast {
		c.each(ctx, road, group)
		return
	}
	ack, err := c.batch(ctx, group)
	switch code := apiCode(err); {
	case err == nil:
		_ = c.settled(nil)
		first := ack.Sequence + 1 - uint64(len(group))
		for i, w := range group {
			w.ack = &jetstream.PubAck{Stream: ack.Stream, Sequence: first + uint64(i)}
		}
	case parts > 1 && (code == errCodeDuplicateInBatch || code == errCodeDuplicateInProcess || wrongLast(err)):
		// One that the stream has, or must not have, keeps out all of them.
		for part := range slices.Chunk(group, max(groupLeast, (len(group)+parts-1)/parts)) {
			c.storeGroup(ctx, road, part, 1)
		}
	case code != 0: // what the stream has costs no sync
		c.each(ctx, road, group)
	default:
		err = c.settled(err)
		for _, w := range group {
			w.err = err
		}
	}
}

// errCodeDuplicateInBatch: the stream has a message of that id (nats-server error 10201).
const errCodeDuplicateInBatch = 10201

// The headers of an atomic batch.
const (
	batchSequenceHeader = "Nats-Batch-Sequence"
	batchCommitHeader   = "Nats-Batch-Commit"
)

// batch stores all of the group or nothing. Nothing is stored before the last of it has arrived.
func (c *core) batch(ctx context.Context, group []*write) (*jetstream.PubAck, error) {
	id := rand.Text()[:12]
	for i, w := range group {
		w.m.Header.Set(link.BatchHeader, id)
		w.m.Header.Set(batchSequenceHeader, strconv.Itoa(i+1))
	}
	last := group[len(group)-1].m
	last.Header.Set(batchCommitHeader, "1")
	defer func() {
		for _, w := range group {
			w.m.Header.Del(link.BatchHeader)
			w.m.Header.Del(batchSequenceHeader)
		}
		last.Header.Del(batchCommitHeader)
	}()
	for _, w := range group[:len(group)-1] {
		if err := c.link.Store.PublishMsg(w.m); err != nil {
			return nil, fmt.Errorf("%w: %w", link.ErrDisconnected, err) // a batch that does not end is none
		}
	}
	return c.link.JS.PublishMsg(ctx, last, jetstream.WithRetryAttempts(0))
}

// each stores one by one, at the same time.
func (c *core) each(ctx context.Context, road link.Road, group []*write) {
	var all sync.WaitGroup
	for _, w := range group {
		all.Go(func() { w.ack, w.err = c.put(ctx, road, w.m) })
	}
	all.Wait()
}
