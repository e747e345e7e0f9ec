package main

import (
	"encoding/binary"
	"math/rand/v2"
	"strconv"

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
	w.begin(protocol.OpHello)
	w.body = append(w.body, `"hello","room":"`...)
	w.body = append(w.body, room...)
	if token != "" {
		w.body = append(w.body, `","token":"`...)
		w.body = append(w.body, token...)
	}
	w.body = append(w.body, `","lang":"en"}`...)
	return w.frame(opText)
}

// danmaku says text, which needs no escaping, with the marker of attempt k behind it.
func (w *writer) danmaku(t tag, k int, text string) []byte {
	w.begin(protocol.OpDanmaku)
	w.id(t, danmaku, k)
	w.body = append(w.body, `,"text":"`...)
	w.body = append(w.body, text...)
	w.body = t.appendMarker(w.body, k)
	w.body = append(w.body, `"}`...)
	return w.frame(opText)
}

// gift gives one of name.
func (w *writer) gift(t tag, k int, name string) []byte {
	w.begin(protocol.OpGift)
	w.id(t, gift, k)
	w.body = append(w.body, `,"gift":"`...)
	w.body = append(w.body, name...)
	w.body = append(w.body, `","count":1}`...)
	return w.frame(opText)
}

// like taps count times, 1 to 20.
func (w *writer) like(t tag, k, count int) []byte {
	w.begin(protocol.OpLike)
	w.id(t, like, k)
	w.body = append(w.body, `,"count":`...)
	w.body = strconv.AppendInt(w.body, int64(count), 10)
	w.body = append(w.body, '}')
	return w.frame(opText)
}

func (w *writer) begin(op protocol.Op) {
	w.body = append(w.body[:0], `{"op":"`...)
	w.body = append(w.body, op...)
	w.body = append(w.body, `","id":`...)
}

func (w *writer) id(t tag, c class, k int) {
	w.body = append(w.body, '"')
	w.body = t.appendID(w.body, c, k)
	w.body = append(w.body, '"')
}
