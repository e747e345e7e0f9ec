package fanout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// likeRetry is the pause after a write that failed.
const likeRetry = time.Second

// AddLikes adds to the room's total. It does not wait: the likes of all rooms are gathered for [Config.LikesGather] and
// written together, and the new total is announced to the rooms once it is stored. What cannot be written now is
// kept, one number per room, and written later. delta is at least 1.
func (f *Fabric) AddLikes(room string, delta int64) error {
	if delta < 1 {
		return fmt.Errorf("likes of room %s: delta %d is less than 1", room, delta)
	}
	if f.isClosed() {
		return ErrClosed
	}
	f.likes.add(room, delta)
	return nil
}

// Likes returns the room's stored total.
func (f *Fabric) Likes(ctx context.Context, room string) (int64, error) {
	r, ok, err := f.last(ctx, likesStream, likesSubject(room))
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

func (f *Fabric) likeLoop(ctx context.Context) {
	pause := func(d time.Duration) bool {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(d):
			return true
		}
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.likes.wake:
		}
		for pause(f.cfg.LikesGather) {
			err := f.flushLikes(ctx)
			if err == nil || ctx.Err() != nil {
				break
			}
			f.log.Warn("likes wait to be stored", "err", err)
			if !pause(likeRetry) {
				return
			}
		}
	}
}

// flushLikes stores what waits and announces the totals. Called by likeLoop, and by Close after it has ended.
func (f *Fabric) flushLikes(ctx context.Context) error {
	batch := f.likes.take(time.Now(), fmt.Sprintf("%s/%d", nodeKey(f.cfg.NodeID), f.incarnation))
	defer func() { f.metrics.likes.Set(float64(f.likes.waiting())) }()
	if !f.store.IsConnected() || f.refusing() || f.storeUnsure(time.Now()) {
		f.likes.unsent(batch)
		if len(batch) > 0 {
			return ErrDisconnected
		}
		return nil
	}
	var errs []error
	for len(batch) > 0 {
		n := min(len(batch), likeBatch)
		errs = append(errs, f.countLikes(ctx, batch[:n]))
		batch = batch[n:]
	}
	errs = append(errs, f.announceLikes(ctx))
	return errors.Join(errs...)
}

// storeSettles is how long likes wait after a reconnect until it is known whether the store still has its counters.
const storeSettles = 5 * time.Second

// storeUnsure reports whether the streams may be gone: what was counted now would be taken for part of the loss.
func (f *Fabric) storeUnsure(now time.Time) bool {
	since := f.reopen.Load()
	return since != nil && now.Sub(*since) < storeSettles && !f.isClosed()
}

// likeBatch is how many counters are written at once.
const likeBatch = 512

// countLikes adds the increments to the counters. Each carries an id, so one whose answer was lost is sent again
// without counting twice.
func (f *Fabric) countLikes(ctx context.Context, batch []increment) error {
	acks := make([]jetstream.PubAckFuture, len(batch))
	var errs []error
	for i, inc := range batch {
		m := &nats.Msg{Subject: likesSubject(inc.room), Header: nats.Header{"Nats-Incr": {strconv.FormatInt(inc.delta, 10)}}}
		ack, err := f.js.PublishMsgAsync(m, jetstream.WithMsgID(inc.id)) // counters refuse WithExpectStream
		if err != nil {
			f.likes.unsent(batch[i:])
			batch, acks = batch[:i], acks[:i]
			errs = append(errs, fmt.Errorf("store likes: %w", err))
			break
		}
		f.likes.trying(inc)
		acks[i] = ack
	}
	for i, ack := range acks {
		select {
		case a := <-ack.Ok():
			total, err := strconv.ParseInt(a.Value, 10, 64)
			if err != nil { // a duplicate is answered without the total
				if total, err = f.Likes(ctx, batch[i].room); err != nil {
					errs = append(errs, err)
				}
			}
			f.likes.stored(batch[i], total)
		case err := <-ack.Err():
			errs = append(errs, fmt.Errorf("store likes: %w", err))
		case <-ctx.Done():
			return errors.Join(append(errs, ctx.Err())...)
		}
	}
	return errors.Join(errs...)
}

// announceLikes tells the rooms their stored totals, on the embedded server after the log has them.
func (f *Fabric) announceLikes(ctx context.Context) error {
	totals := f.likes.due()
	if len(totals) == 0 {
		return nil
	}
	if f.server != nil {
		if err := f.logLikes(ctx, totals); err != nil {
			f.likes.notAnnounced(totals)
			return err
		}
	}
	for room, total := range totals {
		// Lost when disconnected: sweep finds that the room is behind the counter.
		_ = f.publish(roomSubject(room, kindLikes), strconv.AppendInt(nil, total, 10))
	}
	return nil
}

// likeLogRooms bounds one record of the log well below NATS' megabyte: 4096 rooms of at most 64 + 25 bytes.
const likeLogRooms = 4096

// logLikes writes the totals in one synced record. The counters are written behind, so that a second of likes costs
// the disk one sync and not one per room; what a crash takes from them, restoreLikes brings back from here.
func (f *Fabric) logLikes(ctx context.Context, totals map[string]int64) error {
	part := make(map[string]int64, min(len(totals), likeLogRooms))
	write := func() error {
		body, err := json.Marshal(part)
		if err != nil {
			return fmt.Errorf("log likes: %w", err)
		}
		clear(part)
		ctx, cancel := f.storeContext(ctx)
		defer cancel()
		if _, err := f.js.Publish(ctx, likeLogSubject, body, jetstream.WithExpectStream(likeLogStream)); err != nil {
			return fmt.Errorf("log likes: %w", err)
		}
		return nil
	}
	for room, total := range totals {
		if part[room] = total; len(part) == likeLogRooms {
			if err := write(); err != nil {
				return err
			}
		}
	}
	if len(part) == 0 {
		return nil
	}
	return write()
}

// restoreLikes raises counters that are below a total that was shown before a crash. Embedded server only: this node
// is then the only writer.
func (f *Fabric) restoreLikes(ctx context.Context) error {
	if f.server == nil {
		return nil
	}
	shown := map[string]int64{}
	for from := uint64(1); ; {
		got, err := f.read(ctx, likeLogStream, directGet{Seq: from, Next: likeLogSubject, Batch: 64})
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
		have, err := f.Likes(ctx, room)
		if err != nil {
			return fmt.Errorf("restore likes: %w", err)
		}
		if have >= total {
			continue
		}
		f.log.Info("like total restored from the log", "room", room, "from", have, "to", total)
		m := &nats.Msg{Subject: likesSubject(room), Header: nats.Header{"Nats-Incr": {strconv.FormatInt(total-have, 10)}}}
		if _, err := f.js.PublishMsg(ctx, m); err != nil {
			return fmt.Errorf("restore likes: %w", err)
		}
	}
	return nil
}
