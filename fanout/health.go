package fanout

import (
	"context"
	"encoding/binary"
	"errors"
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
	// Stored: the gift ledger answered the last time it was asked.
	Stored bool
	// Ledger is its size then.
	Ledger LedgerSize
}

var (
	errDeaf    = errors.New("fanout: nats accepts messages and delivers none")
	errNoStore = errors.New("fanout: jetstream does not answer")
)

// Err returns nil when everything works, and otherwise the faults, joined.
func (h Health) Err() error {
	var faults []error
	if !h.Connected {
		faults = append(faults, ErrDisconnected)
	} else if !h.Delivering {
		faults = append(faults, errDeaf)
	}
	if !h.Stored {
		faults = append(faults, errNoStore)
	}
	return errors.Join(faults...)
}

// Health reports the state of the bus; it does not wait.
func (f *Fabric) Health() Health {
	f.mu.Lock()
	ledger, stored := f.ledger, f.stored
	f.mu.Unlock()
	return Health{Connected: f.connected(), Delivering: !f.deaf(time.Now()), Stored: stored, Ledger: ledger}
}

// probe sends messages to ourselves over one connection and notes when one came back.
type probe struct {
	conn    *nats.Conn
	subject string
	began   time.Time
	back    atomic.Int64 // nanoseconds after began of the last return
	trip    atomic.Int64 // nanoseconds of its round trip
}

func newProbe(c *nats.Conn, subject string) (*probe, error) {
	p := &probe{conn: c, subject: subject, began: time.Now()}
	_, err := c.Subscribe(subject, func(m *nats.Msg) {
		if len(m.Data) != 8 {
			return
		}
		now := int64(time.Since(p.began))
		p.back.Store(now)
		p.trip.Store(now - int64(binary.BigEndian.Uint64(m.Data)))
	})
	return p, err
}

func (p *probe) send() error {
	return p.conn.Publish(p.subject, binary.BigEndian.AppendUint64(nil, uint64(time.Since(p.began))))
}

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
	for {
		for i, p := range f.health {
			_ = p.send() // not connected: counted as silence
			now := time.Now()
			if p.conn.IsConnected() && p.silence(now) > f.cfg.ProbeTimeout && now.Sub(last[i]) > f.cfg.ProbeTimeout {
				last[i] = now
				f.metrics.deaf.Inc()
				f.log.Error("nats delivers nothing; connecting anew", "connection", i, "silence", p.silence(now))
				_ = p.conn.ForceReconnect() // fails only on a closed connection
			}
		}
		f.metrics.probe.Set(time.Duration(f.health[0].trip.Load()).Seconds())
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
