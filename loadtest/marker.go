package main

import (
	"bytes"
	"math/rand/v2"
	"strconv"
)

// A tag tells one trial's messages from everybody else's, real people in the room included.
type tag [3]byte

const base36 = "0123456789abcdefghijklmnopqrstuvwxyz"

func newTag(rng *rand.Rand) tag {
	var t tag
	for i := range t {
		t[i] = base36[rng.IntN(len(base36))]
	}
	return t
}

// appendMarker appends what the end of a danmaku's text carries so that its receivers know which attempt it was: a
// space, a tilde, the trial's tag and the attempt's number, about eight bytes.
func (t tag) appendMarker(dst []byte, k int) []byte {
	dst = append(dst, ' ', '~')
	dst = append(dst, t[:]...)
	return strconv.AppendInt(dst, int64(k), 36)
}

// marked finds the attempt's number at the end of text, -1 when this trial did not write it.
func (t tag) marked(text []byte) int {
	i := bytes.LastIndexByte(text, '~')
	if i < 1 || text[i-1] != ' ' {
		return -1
	}
	return t.number(text[i+1:])
}

// appendID appends the client id of attempt k: the class's letter, the tag and the number.
func (t tag) appendID(dst []byte, c class, k int) []byte {
	dst = append(dst, c.letter())
	dst = append(dst, t[:]...)
	return strconv.AppendInt(dst, int64(k), 36)
}

// attempt finds the attempt's number in a client id, -1 when this trial did not make it.
func (t tag) attempt(id []byte) int {
	if len(id) == 0 {
		return -1
	}
	return t.number(id[1:])
}

func (t tag) number(b []byte) int {
	if len(b) <= len(t) || len(b) > len(t)+6 || !bytes.Equal(b[:len(t)], t[:]) {
		return -1
	}
	n := 0
	for _, c := range b[len(t):] {
		switch {
		case c >= '0' && c <= '9':
			n = n*36 + int(c-'0')
		case c >= 'a' && c <= 'z':
			n = n*36 + int(c-'a') + 10
		default:
			return -1
		}
	}
	return n
}
