package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"liveroom/protocol"
)

// Opcodes of a frame (RFC 6455, section 5.2).
const (
	opContinuation = 0x0
	opText         = 0x1
	opBinary       = 0x2
	opClose        = 0x8
	opPing         = 0x9
	opPong         = 0xA
)

// appendClientFrame appends payload as one masked frame, as a client must send it (RFC 6455, section 5.3).
func appendClientFrame(dst []byte, opcode byte, key uint32, payload []byte) []byte {
	const fin, masked = 0x80, 0x80
	switch n := len(payload); {
	case n < 126:
		dst = append(dst, fin|opcode, masked|byte(n))
	case n < 1<<16:
		dst = append(dst, fin|opcode, masked|126)
		dst = binary.BigEndian.AppendUint16(dst, uint16(n))
	default:
		dst = append(dst, fin|opcode, masked|127)
		dst = binary.BigEndian.AppendUint64(dst, uint64(n))
	}
	var k [4]byte
	binary.BigEndian.PutUint32(k[:], key)
	dst = append(dst, k[:]...)
	for i, b := range payload {
		dst = append(dst, b^k[i&3])
	}
	return dst
}

// writer encodes requests; it keeps its buffers, so that an attempt allocates nothing. Not safe for concurrent use.
type writer struct {
	rng  *rand.Rand
	body []byte
	out  []byte
}

func newWriter(rng *rand.Rand) *writer { return &writer{rng: rng} }

// frame masks the body that was built. The result is valid until the next call.
func (w *writer) frame(opcode byte) []byte {
	w.out = appendClientFrame(w.out[:0], opcode, w.rng.Uint32(), w.body)
	return w.out
}

// hello asks to join; token may be empty.
func (w *writer) hello(room, token string) []byte {
	w.body = fmt.Appendf(w.body[:0], `{"op":"%s","id":"hello","room":"%s"`, protocol.OpHello, room)
	if token != "" {
		w.body = fmt.Appendf(w.body, `,"token":"%s"`, token)
	}
	w.body = append(w.body, `,"lang":"en"}`...)
	return w.frame(opText)
}

// danmaku says text, which needs no escaping, with the marker of attempt k behind it.
func (w *writer) danmaku(t tag, k int, text string) []byte {
	w.begin(protocol.OpDanmaku, t, danmaku, k)
	w.body = append(append(w.body, `,"text":"`...), text...)
	w.body = append(t.appendMarker(w.body, k), `"}`...)
	return w.frame(opText)
}

// gift gives one of name.
func (w *writer) gift(t tag, k int, name string) []byte {
	w.begin(protocol.OpGift, t, gift, k)
	w.body = fmt.Appendf(w.body, `,"gift":"%s","count":1}`, name)
	return w.frame(opText)
}

// like taps count times, 1 to 20.
func (w *writer) like(t tag, k, count int) []byte {
	w.begin(protocol.OpLike, t, like, k)
	w.body = fmt.Appendf(w.body, `,"count":%d}`, count)
	return w.frame(opText)
}

// begin writes what all requests of attempts begin with.
func (w *writer) begin(op protocol.Op, t tag, c class, k int) {
	w.body = append(append(append(w.body[:0], `{"op":"`...), op...), `","id":"`...)
	w.body = append(t.appendID(w.body, c, k), '"')
}

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

// minter signs the tokens of made-up viewers with the server's secret. Without a secret there are only guests.
type minter struct {
	secret []byte
	prefix string        // of the users' ids, different in each run so that nobody's bucket is still empty
	ttl    time.Duration // how long a token is valid
}

// user is the id of viewer i.
func (m *minter) user(i int) string { return fmt.Sprintf("%s%d", m.prefix, i) }

// token is what viewer i says hello with; "" for a guest.
func (m *minter) token(i int) (string, error) {
	return m.sign(jwt.MapClaims{"sub": m.user(i), "name": fmt.Sprintf("Viewer %d", i), "role": string(protocol.RoleViewer)})
}

// admin may call the operators' part of a server; "" without a secret.
func (m *minter) admin() (string, error) {
	return m.sign(jwt.MapClaims{"sub": m.prefix + "admin", "role": string(protocol.RoleAdmin)})
}

func (m *minter) sign(claims jwt.MapClaims) (string, error) {
	if len(m.secret) == 0 {
		return "", nil
	}
	claims["exp"] = time.Now().Add(m.ttl).Unix()
	return jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString(m.secret)
}
