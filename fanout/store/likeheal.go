package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"liveroom/fanout/link"
	"liveroom/protocol"
)

// raise is an increment that brings a counter back to what was shown, on record before it is made: a node that finds
// one makes it again, under its id, before it looks at the counter. So of many nodes that see the same loss one repairs it.
type raise struct {
	ID    string `json:"id"`
	Delta int64  `json:"delta"`
	// Done: it was made. The record stays, so that who looked at the counter before cannot put another on record.
	Done bool `json:"done,omitempty"`
}

// raiseAge is how long a record is made again, well below the counters' memory for ids. An older one is of a node that
// died; its increment has been made, or never will be.
const raiseAge = likeWindow / 2

// heal raises the counters that are below these totals, which were shown: the store came back empty, or from the
// past. Likes that were counted since the loss are taken for part of it.
func (k *LikeTotals) heal(ctx context.Context, shown map[string]int64) error {
	rooms := slices.Collect(maps.Keys(shown))
	errs, places := make([]error, len(rooms)), make(chan struct{}, healsAtOnce)
	var heals sync.WaitGroup
	for i, room := range rooms {
		places <- struct{}{}
		heals.Go(func() {
			errs[i] = k.healRoom(ctx, room, shown[room])
			<-places
		})
	}
	heals.Wait()
	if errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil }); len(errs) > 0 {
		return fmt.Errorf("restore likes of %d of %d rooms: %w", len(errs), len(rooms), errs[0])
	}
	return nil
}

const healsAtOnce = 8

func (k *LikeTotals) healRoom(ctx context.Context, room string, shown int64) error {
	key := "raise." + protocol.Token(room)
	for ctx.Err() == nil {
		revision, err := k.settleRaise(ctx, room, key)
		if err != nil {
			return err
		}
		have, err := k.counted(ctx, room)
		if err != nil || have >= shown {
			return err
		}
		r := raise{ID: fmt.Sprintf("raise/%s/%d/%d", protocol.Token(k.cfg.NodeID), k.incarnation, k.restored.Add(1)), Delta: shown - have}
		revision, err = k.recordRaise(ctx, key, r, revision)
		if errors.Is(err, jetstream.ErrKeyExists) || errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
			continue // another node sees the same
		}
		if err != nil {
			return err
		}
		if err := k.makeRaise(ctx, room, r); err != nil {
			return err
		}
		k.log.Warn("like total restored from what this node has shown", "room", room, "from", have, "to", shown)
		r.Done = true
		if _, err := k.recordRaise(ctx, key, r, revision); err != nil && apiCode(err) == 0 {
			return err
		}
		return nil // or another one is on record
	}
	return ctx.Err()
}

// settleRaise makes what is on record, and returns the record's revision, 0 for none.
func (k *LikeTotals) settleRaise(ctx context.Context, room, key string) (uint64, error) {
	ctx, cancel := k.link.Bounded(ctx)
	defer cancel()
	e, err := k.buckets.nodes.Get(ctx, key)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("likes of room %s: %w", room, err)
	}
	var r raise
	if err := json.Unmarshal(e.Value(), &r); err != nil || r.Done {
		return e.Revision(), nil
	}
	info, err := k.link.StreamInfo(ctx, nodesStream)
	if err != nil {
		return 0, err
	}
	if info.TimeStamp.Sub(e.Created()) < raiseAge {
		if err := k.makeRaise(ctx, room, r); err != nil {
			return 0, err
		}
	}
	return e.Revision(), nil
}

func (k *LikeTotals) recordRaise(ctx context.Context, key string, r raise, revision uint64) (uint64, error) {
	ctx, cancel := k.link.Bounded(ctx)
	defer cancel()
	body, err := json.Marshal(r)
	if err != nil {
		return 0, err
	}
	if revision == 0 {
		return k.buckets.nodes.Create(ctx, key, body)
	}
	return k.buckets.nodes.Update(ctx, key, body, revision)
}

func (k *LikeTotals) makeRaise(ctx context.Context, room string, r raise) error {
	ctx, cancel := k.link.Bounded(ctx)
	defer cancel()
	m := &nats.Msg{Subject: likesSubject(room), Header: nats.Header{"Nats-Incr": {strconv.FormatInt(r.Delta, 10)}}}
	ack, err := k.link.JS.PublishMsg(ctx, m, jetstream.WithMsgID(r.ID))
	if err != nil {
		return fmt.Errorf("raise likes of room %s: %w", room, err)
	}
	if total, err := strconv.ParseInt(ack.Value, 10, 64); err == nil {
		k.rooms.Say(room, link.Seen{Likes: total})
	}
	return nil
}

// counted is the leader's total: this node must not raise what another one has raised.
func (k *LikeTotals) counted(ctx context.Context, room string) (int64, error) {
	r, ok, err := k.link.LeaderGet(ctx, link.LikesStream, link.Ask{Last: likesSubject(room)})
	if err != nil || !ok {
		return 0, err
	}
	return parseTotal(r.Data)
}
