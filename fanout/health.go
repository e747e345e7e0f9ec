package fanout

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
)

// Health is what this node can rely on now.
type Health struct {
	// Connected: both connections to NATS stand.
	Connected bool
	// Delivering: a message to ourselves came back within [Config.ProbeTimeout]. A broker may accept everything and
	// deliver nothing; only this tells.
	Delivering bool
	// Conflict: why this node must end, nil as long as it need not; see [Fabric.Conflict].
	Conflict error
	// Stored: the gift ledger answered the last time it was asked.
	Stored bool
	// Forbidden names what NATS does not let this node do, see [Fabric.Forbidden].
	Forbidden []string
	// Ledger is its size then.
	Ledger LedgerSize
}

var (
	errDeaf    = errors.New("fanout: nats accepts messages and delivers none")
	errNoStore = errors.New("fanout: jetstream does not answer")
)

// Err returns nil when everything works, and otherwise the faults, joined.
func (h Health) Err() error {
	faults := []error{h.Conflict}
	if !h.Connected {
		faults = append(faults, ErrDisconnected)
	} else if !h.Delivering {
		faults = append(faults, errDeaf)
	}
	if !h.Stored {
		faults = append(faults, errNoStore)
	}
	if len(h.Forbidden) > 0 {
		faults = append(faults, forbiddenError(h.Forbidden))
	}
	return errors.Join(faults...)
}

func forbiddenError(all []string) error {
	return fmt.Errorf("%w: %s", ErrForbidden, strings.Join(all, ", "))
}

// Health reports the state of the bus; it does not wait.
func (f *Fabric) Health() Health {
	f.mu.Lock()
	ledger, stored := f.ledger, f.stored
	f.mu.Unlock()
	return Health{Connected: f.connected(), Delivering: !f.deaf(time.Now()), Stored: stored, Ledger: ledger, Conflict: f.Conflict(), Forbidden: f.Forbidden()}
}

// HeardSelf returns the latest instant of which this node knows that others could reach it: when it sent the last message
// to itself that came back, on the worse of its two connections. It is the instant of sending, because a process that was paused finds
// messages of long ago when it wakes. It costs a few loads.
func (f *Fabric) HeardSelf() time.Time {
	oldest := f.health[0].sentAt()
	if other := f.health[1].sentAt(); other.Before(oldest) {
		return other
	}
	return oldest
}

// Healthy reports whether both connections stand and [Fabric.HeardSelf] is within [Config.ProbeTimeout]. It costs a few loads.
func (f *Fabric) Healthy() bool {
	return f.connected() && time.Since(f.HeardSelf()) <= f.cfg.ProbeTimeout
}

// probe sends messages to ourselves over one connection and notes when one came back.
type probe struct {
	conn    *nats.Conn
	subject string
	began   time.Time
	back    atomic.Int64 // nanoseconds after began of the last return
	sent    atomic.Int64 // the same, of its sending
}

func newProbe(c *nats.Conn, subject string) (*probe, error) {
	p := &probe{conn: c, subject: subject, began: time.Now()}
	_, err := c.Subscribe(subject, func(m *nats.Msg) {
		if len(m.Data) != 8 {
			return
		}
		p.sent.Store(int64(binary.BigEndian.Uint64(m.Data)))
		p.back.Store(int64(time.Since(p.began)))
	})
	return p, err
}

func (p *probe) send() error {
	return p.conn.Publish(p.subject, binary.BigEndian.AppendUint64(nil, uint64(time.Since(p.began))))
}

func (p *probe) sentAt() time.Time { return p.began.Add(time.Duration(p.sent.Load())) }

// trip is how long the last message that came back was under way.
func (p *probe) trip() time.Duration { return time.Duration(p.back.Load() - p.sent.Load()) }

func (p *probe) silence(now time.Time) time.Duration {
	return now.Sub(p.began) - time.Duration(p.back.Load())
}

func (f *Fabric) deaf(now time.Time) bool {
	for _, p := range f.health {
		if p.silence(now) > f.cfg.ProbeTimeout {
			return true
		}
	}
	return false
}

// probeLoop cuts a connection that stands and delivers nothing, so that nats.go makes it anew.
func (f *Fabric) probeLoop(ctx context.Context) {
	tick := time.NewTicker(f.cfg.ProbeEvery)
	defer tick.Stop()
	last := [2]time.Time{}
	var ill time.Time // when something was wrong last
	for began := time.Now(); ; {
		// A process that was paused learns nothing from a silence that was its own; the next round tells.
		late := time.Since(began) > f.cfg.ProbeTimeout
		began = time.Now()
		for i, p := range f.health {
			_ = p.send() // not connected: counted as silence
			now := time.Now()
			if !late && p.conn.IsConnected() && p.silence(now) > f.cfg.ProbeTimeout && now.Sub(last[i]) > f.cfg.ProbeTimeout {
				last[i] = now
				f.metrics.deaf.Inc()
				f.log.Error("nats delivers nothing; connecting anew", "connection", i, "silence", p.silence(now))
				_ = p.conn.ForceReconnect() // fails only on a closed connection
			}
		}
		now := time.Now()
		f.probeRoads(now, !late && f.connected() && !f.deaf(now))
		if f.Health().Err() != nil {
			ill = now
		}
		if now.Sub(ill) > f.cfg.NodeTimeout {
			f.roster.settle(now)
		}
		f.metrics.nodes.Set(float64(f.NodeCount()))
		f.parcels.expire(now)
		for _, s := range f.subscriptions() {
			s.countDropped()
		}
		f.metrics.probe.Set(max(0, f.health[0].trip()).Seconds())
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
