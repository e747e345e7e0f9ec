package redisstore

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"liveroom/limit"
	"liveroom/limit/cluster"
)

// A call travels as one MessagePack string, which the script unpacks in C and in
// which whole numbers stay whole. Its order is that of the first lines of
// script/state.lua.

// appendCall appends a call that has been validated.
func appendCall(b []byte, c *cluster.Call) []byte {
	b = appendInt(b, int64(c.Op))
	b = appendString(b, c.Node)
	b = appendInt(b, c.Seq)
	b = appendInt(b, int64(c.Want))
	b = appendBool(b, c.Stay)
	for _, n := range [...]int64{c.Received, c.Hold, c.Returned, c.Debt, c.Ask, c.Least, c.Level} {
		b = appendInt(b, n)
	}
	b = appendBool(b, c.Owned)
	for _, n := range [...]int64{c.Floor, microsUp(c.Lease), c.Seen, int64(c.LeastSince / time.Microsecond), microsUp(c.MostSince)} {
		b = appendInt(b, n)
	}
	b = appendBool(b, c.Lost)
	b = appendString(b, c.Steal)
	b = appendString(b, c.Free)
	b = appendArray(b, len(c.Tiers))
	for i := range c.Tiers {
		t := &c.Tiers[i]
		b = appendArray(b, 5)
		for _, n := range [...]int64{t.Size, t.Num, t.Den, t.Start, int64(t.Length / time.Microsecond)} {
			b = appendInt(b, n)
		}
	}
	return b
}

func microsUp(d time.Duration) int64 { return int64((d + time.Microsecond - 1) / time.Microsecond) }

func appendInt(b []byte, n int64) []byte {
	if n >= 0 && n < 128 {
		return append(b, byte(n))
	}
	return binary.BigEndian.AppendUint64(append(b, 0xd3), uint64(n))
}

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 0xc3)
	}
	return append(b, 0xc2)
}

// appendString appends up to 64 KiB; names are at most some hundred bytes.
func appendString(b []byte, s string) []byte {
	b = binary.BigEndian.AppendUint16(append(b, 0xda), uint16(len(s)))
	return append(b, s...)
}

// appendArray begins an array of up to 65,535 items.
func appendArray(b []byte, n int) []byte {
	return binary.BigEndian.AppendUint16(append(b, 0xdc), uint16(n))
}

// readReply sets the reply from what a script returned: a status, then the
// numbers of cluster.Reply, then the owner.
func readReply(r *cluster.Reply, answer any) error {
	list, ok := answer.([]any)
	if ok && len(list) == 1 && list[0] == int64(1) {
		return cluster.ErrStale
	}
	if !ok || len(list) != 10 {
		return fmt.Errorf("redisstore: the script answered %T of %d", answer, len(list))
	}
	var n [9]int64
	for i := range n {
		if n[i], ok = list[i].(int64); !ok {
			return fmt.Errorf("redisstore: the script answered %T in place %d", list[i], i)
		}
	}
	owner, ok := list[9].(string)
	if !ok || n[0] != 0 {
		return fmt.Errorf("redisstore: the script answered %T as owner, status %d", list[9], n[0])
	}
	*r = cluster.Reply{
		Now: n[1], Granted: n[2], Left: n[3], Wait: duration(n[4]), Ends: duration(n[5]), Tier: int(n[6]),
		Others: int(n[7]), Keep: duration(n[8]), Owner: owner,
	}
	return nil
}

// duration reads microseconds; -1, and what no Duration can hold, is Never.
func duration(micros int64) time.Duration {
	if micros < 0 || micros > math.MaxInt64/int64(time.Microsecond) {
		return limit.Never
	}
	return time.Duration(micros) * time.Microsecond
}
