package fanout

import (
	"context"
	"time"
)

// LedgerSize is the gift ledger's size and the size at which it refuses gifts, in bytes.
type LedgerSize struct{ Bytes, Limit int64 }

// nearlyFull is where operators are told.
func (l LedgerSize) nearlyFull() bool { return l.Bytes > l.Limit/10*8 }

// measureLedger asks the ledger for its size, as often as the probe asks for ourselves, so that an outage shows within a
// second.
func (f *Fabric) measureLedger(ctx context.Context) {
	ctx, cancel := f.storeContext(ctx)
	defer cancel()
	s, err := f.js.Stream(ctx, giftStream)
	if err != nil {
		f.noteLedger(nil)
		return
	}
	info := s.CachedInfo()
	f.knowLedger(info)
	f.known.gift.meet(info.State.LastSeq)
	f.marks.ended(time.Now(), info.State.LastSeq, false)
	size := LedgerSize{int64(info.State.Bytes), info.Config.MaxBytes}
	if wasFull := f.noteLedger(&size); size.nearlyFull() && !wasFull {
		f.log.Warn("gift ledger is over 80 % full; at 100 % gifts are refused", "bytes", size.Bytes, "limit", size.Limit)
	}
	f.metrics.giftBytes.Set(float64(size.Bytes))
	f.metrics.giftLimit.Set(float64(size.Limit))
}

// noteLedger keeps the answer, nil for none, and reports whether the ledger was nearly full before.
func (f *Fabric) noteLedger(size *LedgerSize) (wasFull bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	wasFull, f.stored = f.ledger.nearlyFull(), size != nil
	if f.stored {
		f.ledger = *size
	}
	return wasFull
}
