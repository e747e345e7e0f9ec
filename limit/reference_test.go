package limit

import (
	"math/big"
	"time"
)

// refBucket is a token bucket by the book, in exact rationals: slow, obvious,
// and sharing no arithmetic with the package. Its readings must not go back.
type refBucket struct {
	perNano *big.Rat // tokens per nanosecond
	burst   *big.Rat
	level   *big.Rat
	last    Instant
}

func newRef(l Limit, now Instant) *refBucket {
	per := int64(l.Per)
	if per == 0 {
		per = int64(time.Second)
	}
	burst := new(big.Rat).SetInt64(l.Burst)
	return &refBucket{perNano: big.NewRat(l.Rate, per), burst: burst, level: new(big.Rat).Set(burst), last: now}
}

func (b *refBucket) at(now Instant) *big.Rat {
	elapsed := new(big.Int).Sub(big.NewInt(int64(now)), big.NewInt(int64(b.last)))
	b.last = now
	b.level.Add(b.level, new(big.Rat).Mul(b.perNano, new(big.Rat).SetInt(elapsed)))
	if b.level.Cmp(b.burst) > 0 {
		b.level.Set(b.burst)
	}
	return b.level
}

// wait returns the nanoseconds after now until the level reaches need tokens.
func (b *refBucket) wait(now Instant, need *big.Rat) time.Duration {
	missing := new(big.Rat).Sub(need, b.at(now))
	switch {
	case missing.Sign() <= 0:
		return 0
	case need.Cmp(b.burst) > 0 || b.perNano.Sign() == 0:
		return Never
	}
	return time.Duration(ceil(missing.Quo(missing, b.perNano)))
}

func (b *refBucket) spend(tokens *big.Rat) { b.level.Sub(b.level, tokens) }

// reload keeps what was used, in whole units of 1/den, at most the new burst.
func (b *refBucket) reload(l Limit, now Instant, den int64) {
	used := new(big.Rat).Sub(b.burst, b.at(now))
	used = tokens(ceil(used.Mul(used, tokens(den, 1))), den)
	fresh := newRef(l, now)
	if fresh.level.Sub(fresh.level, used); fresh.level.Sign() < 0 {
		fresh.level.SetInt64(0)
	}
	*b = *fresh
}

func floorInt(r *big.Rat) *big.Int {
	q, m := new(big.Int).QuoRem(r.Num(), r.Denom(), new(big.Int))
	if m.Sign() < 0 {
		q.Sub(q, big.NewInt(1))
	}
	return q
}

func floor(r *big.Rat) int64 { return floorInt(r).Int64() }

func ceil(r *big.Rat) int64 {
	neg := new(big.Rat).Neg(r)
	return -floor(neg)
}

func tokens(n, divisor int64) *big.Rat { return big.NewRat(n, divisor) }
