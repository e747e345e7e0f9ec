package fanout

import (
	"context"
	"fmt"
	"strings"
	"time"

	"liveroom/protocol"
)

// sweepBatch is how many rooms one read compares; the server answers at most 1024 subjects at once.
const sweepBatch = 256

// sweep compares the subscribed rooms with the store, which finds what no later message would: a stored last gift that
// was never re-published and whose sender is gone.
func (f *Fabric) sweep(ctx context.Context) error {
	subs := f.subscriptions()
	for len(subs) > 0 {
		n := min(len(subs), sweepBatch)
		if err := f.compare(ctx, subs[:n]); err != nil {
			return fmt.Errorf("compare rooms with the store: %w", err) // the next sweep begins anew
		}
		subs = subs[n:]
	}
	return nil
}

// followRooms sweeps when somebody asks, and in each period.
func (f *Fabric) followRooms() *follower {
	w := f.follow(FollowRooms, f.cfg.SweepEvery, 3*f.cfg.SweepEvery, f.sweep)
	w.news = f.sweepSoon
	return w
}

// compare tells the rooms that are behind the store.
func (f *Fabric) compare(ctx context.Context, subs []*Subscription) error {
	stored, shown := make(map[string]*seen, len(subs)), make(map[string]int64, len(subs))
	gifts, likes, settings := make([]string, len(subs)), make([]string, len(subs)), make([]string, len(subs))
	for i, s := range subs {
		shown[s.room] = s.total.Load() // before the store is read, which has had it then
		stored[protocol.Token(s.room)] = &seen{}
		gifts[i], likes[i], settings[i] = giftSubject(s.room), likesSubject(s.room), settingsSubject(s.room)
	}
	each := func(stream string, subjects []string, take func(v *seen, r record)) error {
		got, err := f.read(ctx, stream, directGet{MultiLast: subjects, Batch: len(subjects)})
		for _, r := range got {
			if v := stored[r.Subject[strings.LastIndexByte(r.Subject, '.')+1:]]; v != nil {
				take(v, r)
			}
		}
		return err
	}
	if err := each(giftStream, gifts, func(v *seen, r record) { v.gift = r.Seq }); err != nil {
		return err
	}
	if err := each(likesStream, likes, func(v *seen, r record) { v.likes, _ = parseTotal(r.Data) }); err != nil {
		return err
	}
	now, err := f.storeNow(ctx, settingsStream)
	if err != nil {
		return err
	}
	err = each(settingsStream, settings, func(v *seen, r record) {
		v.revision = r.Seq
		f.renew(ctx, r, now)
	})
	if err != nil {
		return err
	}
	lost := map[string]int64{}
	for _, s := range subs {
		if stored[protocol.Token(s.room)].likes < shown[s.room] {
			lost[s.room] = shown[s.room]
		}
		if v := *stored[protocol.Token(s.room)]; s.behind(v) {
			f.say(s.room, v)
		}
	}
	return f.healLikes(ctx, lost)
}

// renew writes settings of a room in use again before their age takes them away, which the store's clock tells.
func (f *Fabric) renew(ctx context.Context, r record, now time.Time) {
	if now.Sub(r.Time) < f.cfg.SettingsAge/2 {
		return
	}
	room := r.Subject[strings.LastIndexByte(r.Subject, '.')+1:]
	ctx, cancel := f.storeContext(ctx)
	defer cancel()
	if _, err := f.buckets.settings.Update(ctx, room, r.Data, r.Seq); err != nil {
		f.log.Debug("settings not renewed; another node or a change was faster", "room", room, "err", err)
	}
}

func (f *Fabric) subscriptions() []*Subscription {
	f.mu.Lock()
	defer f.mu.Unlock()
	subs := make([]*Subscription, 0, len(f.subs))
	for _, s := range f.subs {
		if s.sub != nil {
			subs = append(subs, s)
		}
	}
	return subs
}
