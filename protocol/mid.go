package protocol

import (
	"crypto/rand"
	"encoding/binary"
	"strconv"
	"sync/atomic"
)

// MIDs hands out message ids: 11 characters, unique over nodes and restarts with 66 bits, of which 32 are drawn
// at random when the process starts. The zero value is not usable; see [NewMIDs]. Safe for concurrent use.
type MIDs struct {
	prefix uint32
	next   atomic.Uint64
}

// NewMIDs draws a new prefix.
func NewMIDs() *MIDs {
	var b [4]byte
	rand.Read(b[:]) // never fails, by crypto/rand's contract
	return &MIDs{prefix: binary.LittleEndian.Uint32(b[:])}
}

const midAlphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_"

// Next returns an id that no earlier call returned. It repeats after 2^34 calls.
func (m *MIDs) Next() string {
	n := m.next.Add(1)
	hi := uint64(m.prefix)
	var b [11]byte
	for i := 10; i >= 6; i-- {
		b[i] = midAlphabet[n&63]
		n >>= 6
	}
	// The sixth character takes the counter's last four bits and the prefix's first two.
	b[5] = midAlphabet[n&15|hi&3<<4]
	hi >>= 2
	for i := 4; i >= 0; i-- {
		b[i] = midAlphabet[hi&63]
		hi >>= 6
	}
	return string(b[:])
}

// GiftMID is the message id of a gift: it follows from the gift's sequence number in its room, so that a repeated
// answer carries the same one.
func GiftMID(seq uint64) string { return "g" + strconv.FormatUint(seq, 10) }
