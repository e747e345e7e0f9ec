package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"liveroom/fanout/link"
	"liveroom/protocol"
)

// LikeTotals keeps rooms' like totals.
type LikeTotals struct {
	*core
	book     *likeBook
	restored atomic.Uint64 // likes that this node has raised, for their ids
}

func likesSubject(room string) string { return link.LikesPrefix + protocol.Token(room) }

// likeRetry is the pause after a write that failed.
const likeRetry = time.Second

// AddLikes adds to the room's total. It does not wait: the likes of all rooms are gathered for a tenth of a second and
// written together, and the new total is announced to the rooms once it is stored. What cannot be written now is
// kept, one number per room, and written later. delta is at least 1.
func (k *LikeTotals) AddLikes(room string, delta int64) error {
	if delta < 1 {
		return fmt.Errorf("likes of room %s: delta %d is less than 1", room, delta)
	}
	if k.link.Closed() {
		return link.ErrClosed
	}
	k.book.add(room, delta)
	return nil
}

// Likes returns the room's stored total.
func (k *LikeTotals) Likes(ctx context.Context, room string) (int64, error) {
	r, ok, err := k.link.Last(ctx, link.LikesStream, likesSubject(room))
	if err != nil || !ok {
		return 0, err
	}
	total, err := parseTotal(r.Data)
	if err != nil {
		return 0, fmt.Errorf("likes of room %s: %w", room, err)
	}
	return total, nil
}

// parseTotal reads the body of a counter, {"val":"123"}.
func parseTotal(b []byte) (int64, error) {
	digits, _ := strings.CutPrefix(string(b), `{"val":"`)
	digits, _ = strings.CutSuffix(digits, `"}`)
	return strconv.ParseInt(digits, 10, 64)
}

// run writes likes until ctx ends.
func (k *LikeTotals) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-k.book.soon:
		}
		for link.Rest(ctx, k.cfg.LikesGather) {
			err := k.Flush(ctx)
			if err == nil || ctx.Err() != nil {
				break
			}
			k.log.Warn("likes wait to be stored", "err", err)
			if !link.Rest(ctx, likeRetry) {
				return
			}
		}
	}
}

// Flush stores what waits and announces the totals. It is called by run, and after that has ended.
func (k *LikeTotals) Flush(ctx context.Context) error {
	batch := k.book.take(time.Now(), fmt.Sprintf("%s/%d", protocol.Token(k.cfg.NodeID), k.incarnation))
	defer func() { k.metrics.likes.Set(float64(k.book.waiting())) }()
	if !k.link.Store.IsConnected() || k.refusing.Load() || k.storeUnsure(time.Now()) {
		k.book.unsent(batch)
		if len(batch) > 0 {
			return link.ErrDisconnected
		}
		return nil
	}
	var errs []error
	for len(batch) > 0 {
		n := min(len(batch), likeBatch)
		errs = append(errs, k.count(ctx, batch[:n]))
		batch = batch[n:]
	}
	errs = append(errs, k.announce(ctx))
	return errors.Join(errs...)
}

// likeBatch is how many counters are written at once.
const likeBatch = 512

// count adds the increments to the counters. Each carries an id, so one whose answer was lost is sent again
// without counting twice.
func (k *LikeTotals) count(ctx context.Context, batch []increment) error {
	acks := make([]jetstream.PubAckFuture, len(batch))
	var errs []error
	for i, inc := range batch {
		m := &nats.Msg{Subject: likesSubject(inc.room), Header: nats.Header{"Nats-Incr": {strconv.FormatInt(inc.delta, 10)}}}
		ack, err := k.link.JS.PublishMsgAsync(m, jetstream.WithMsgID(inc.id)) // counters refuse WithExpectStream
		if err != nil {
			k.book.unsent(batch[i:])
			batch, acks = batch[:i], acks[:i]
			errs = append(errs, fmt.Errorf("store likes: %w", err))
			break
		}
		k.book.trying(inc)
		acks[i] = ack
	}
	for i, ack := range acks {
		select {
		case a := <-ack.Ok():
			total, err := strconv.ParseInt(a.Value, 10, 64)
			if err != nil { // a duplicate is answered without the total
				if total, err = k.Likes(ctx, batch[i].room); err != nil {
					errs = append(errs, err)
				}
			}
			k.book.stored(batch[i], total)
		case err := <-ack.Err():
			errs = append(errs, fmt.Errorf("store likes: %w", err))
		case <-ctx.Done():
			return errors.Join(append(errs, ctx.Err())...)
		}
	}
	return errors.Join(errs...)
}

// announce tells the rooms their stored totals, on the embedded server after the log has them.
func (k *LikeTotals) announce(ctx context.Context) error {
	totals := k.book.due()
	if len(totals) == 0 {
		return nil
	}
	if k.link.Embedded() {
		if err := k.logTotals(ctx, totals); err != nil {
			k.book.notAnnounced(totals)
			return err
		}
	}
	for room, total := range totals {
		k.rooms.SayLikes(room, total)
	}
	return nil
}

// likeLogRooms bounds one record of the log well below NATS' megabyte: 4096 rooms of at most 64 + 25 bytes.
const likeLogRooms = 4096

// logTotals writes the totals in synced records, one for all rooms but where they are many. The counters are written behind, so that a
// second of likes costs the disk one sync and not one per room; what a crash takes from them, restore brings back from here.
func (k *LikeTotals) logTotals(ctx context.Context, totals map[string]int64) error {
	rooms := slices.Collect(maps.Keys(totals))
	for part := range slices.Chunk(rooms, likeLogRooms) {
		record := make(map[string]int64, len(part))
		for _, room := range part {
			record[room] = totals[room]
		}
		body, err := json.Marshal(record)
		if err == nil {
			within, cancel := k.link.Bounded(ctx)
			_, err = k.link.JS.Publish(within, link.LikeLogSubject, body, jetstream.WithExpectStream(link.LikeLogStream))
			cancel()
		}
		if err != nil {
			return fmt.Errorf("log likes: %w", err)
		}
	}
	return nil
}

// restore raises counters that are below a total that was shown before a crash. Embedded server only: this node
// is then the only writer.
func (k *LikeTotals) restore(ctx context.Context) error {
	if !k.link.Embedded() {
		return nil
	}
	shown := map[string]int64{}
	for from := uint64(1); ; {
		got, err := k.link.Read(ctx, link.LikeLogStream, link.Ask{Seq: from, Next: link.LikeLogSubject, Batch: 64})
		if err != nil {
			return fmt.Errorf("restore likes: %w", err)
		}
		for _, r := range got {
			var totals map[string]int64
			if err := json.Unmarshal(r.Data, &totals); err != nil {
				return fmt.Errorf("restore likes: record %d: %w", r.Seq, err)
			}
			for room, total := range totals {
				shown[room] = max(shown[room], total)
			}
			from = r.Seq + 1
		}
		if len(got) == 0 {
			break
		}
	}
	for room, total := range shown {
		have, err := k.Likes(ctx, room)
		if err != nil {
			return fmt.Errorf("restore likes: %w", err)
		}
		if have >= total {
			continue
		}
		k.log.Info("like total restored from the log", "room", room, "from", have, "to", total)
		m := &nats.Msg{Subject: likesSubject(room), Header: nats.Header{"Nats-Incr": {strconv.FormatInt(total-have, 10)}}}
		if _, err := k.link.JS.PublishMsg(ctx, m); err != nil {
			return fmt.Errorf("restore likes: %w", err)
		}
	}
	return nil
}
