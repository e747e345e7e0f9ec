package client

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"liveroom/protocol"
)

// Opcodes of a frame (RFC 6455, section 5.2).
const (
	opContinuation = 0x0
	OpText         = 0x1
	opBinary       = 0x2
	OpClose        = 0x8
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

// goodbye is a close frame of code 1000.
var goodbye = appendClientFrame(nil, OpClose, 0, []byte{0x03, 0xe8})

// Writer encodes requests; it keeps its buffers, so that an attempt allocates nothing. Not safe for concurrent use.
type Writer struct {
	Rng  *rand.Rand
	body []byte
	out  []byte
}

func NewWriter(rng *rand.Rand) *Writer { return &Writer{Rng: rng} }

// frame masks the body that was built. The result is valid until the next call.
func (w *Writer) frame(opcode byte) []byte {
	w.out = appendClientFrame(w.out[:0], opcode, w.Rng.Uint32(), w.body)
	return w.out
}

// request masks a request as fmt formats it.
func (w *Writer) request(format string, args ...any) []byte {
	w.body = fmt.Appendf(w.body[:0], format, args...)
	return w.frame(OpText)
}

// hello asks to join; token may be empty, for a guest.
func (w *Writer) hello(room, token string) []byte {
	return w.request(`{"op":"%s","id":"hello","room":"%s","token":"%s","lang":"en"}`, protocol.OpHello, room, token)
}

// Danmaku says text, which needs no escaping, with the marker of attempt k behind it.
func (w *Writer) Danmaku(t tag, k int, text string) []byte {
	return w.request(`{"op":"%s","id":"%s","text":"%s%s"}`, protocol.OpDanmaku, t.id(Danmaku, k), text, t.marker(k))
}

// gift gives one of name.
func (w *Writer) gift(t tag, k int, name string) []byte {
	return w.request(`{"op":"%s","id":"%s","gift":"%s","count":1}`, protocol.OpGift, t.id(Gift, k), name)
}

// like taps count times, 1 to 20.
func (w *Writer) like(t tag, k, count int) []byte {
	return w.request(`{"op":"%s","id":"%s","count":%d}`, protocol.OpLike, t.id(Like, k), count)
}

// A tag tells one trial's messages from everybody else's, real people in the room included.
type tag string

func NewTag(rng *rand.Rand) tag {
	const base36 = "0123456789abcdefghijklmnopqrstuvwxyz"
	var t [3]byte
	for i := range t {
		t[i] = base36[rng.IntN(len(base36))]
	}
	return tag(t[:])
}

// marker is what the end of a danmaku's text carries so that its receivers know which attempt it was: a space, a tilde, the
// trial's tag and the attempt's number, about eight bytes.
func (t tag) marker(k int) string { return " ~" + string(t) + strconv.FormatInt(int64(k), 36) }

// marked finds the attempt's number at the end of text, -1 when this trial did not write it.
func (t tag) marked(text string) int {
	i := strings.LastIndex(text, " ~")
	if i < 0 {
		return -1
	}
	return t.number(text[i+2:])
}

// id is the client id of attempt k: the class's letter, the tag and the number.
func (t tag) id(c Class, k int) string {
	return c.String()[:1] + string(t) + strconv.FormatInt(int64(k), 36)
}

// attempt finds the attempt's number in a client id, -1 when this trial did not make it.
func (t tag) attempt(id string) int {
	if id == "" {
		return -1
	}
	return t.number(id[1:])
}

func (t tag) number(s string) int {
	rest, ok := strings.CutPrefix(s, string(t))
	n, err := strconv.ParseUint(rest, 36, 31)
	if !ok || err != nil {
		return -1
	}
	return int(n)
}

// Minter signs the tokens of made-up viewers with the server's secret. Without a secret there are only guests.
type Minter struct {
	Secret []byte
	Prefix string        // of the users' ids, different in each run so that nobody's bucket is still empty
	TTL    time.Duration // how long a token is valid
}

// user is the id of viewer i.
func (m *Minter) user(i int) string { return fmt.Sprintf("%s%d", m.Prefix, i) }

// token is what viewer i says hello with; "" for a guest.
func (m *Minter) token(i int) (string, error) {
	return m.sign(jwt.MapClaims{"sub": m.user(i), "name": fmt.Sprintf("Viewer %d", i), "role": string(protocol.RoleViewer)})
}

// Admin may call the operators' part of a server; "" without a secret.
func (m *Minter) Admin() (string, error) {
	return m.sign(jwt.MapClaims{"sub": m.Prefix + "admin", "role": string(protocol.RoleAdmin)})
}

func (m *Minter) sign(claims jwt.MapClaims) (string, error) {
	if len(m.Secret) == 0 {
		return "", nil
	}
	claims["exp"] = time.Now().Add(m.TTL).Unix()
	return jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString(m.Secret)
}
