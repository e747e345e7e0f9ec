package main

import (
	"errors"
	"net"
	"sync/atomic"
)

// maxBacklog bounds what a session may have queued towards the server, in bytes.
const maxBacklog = 64 << 10

var (
	errGone    = errors.New("the socket is gone")
	errBacklog = errors.New("the server does not read")
)

// reader owns the inbound half of many sessions.
type reader interface {
	// adopt takes over an upgraded socket; early are bytes that came behind the answer to the upgrade. On an error the
	// socket is closed.
	adopt(s *session, conn net.Conn, early []byte) error
	// close ends all of it and waits; sessions still open are cut.
	close()
}

// readers spreads sessions over several readers.
type readers struct {
	sinks []*sink
	each  []reader
	next  atomic.Uint32
}

// newReaders starts n of them. Encrypted sockets need the portable kind.
func newReaders(n int, seed uint64, encrypted bool) (*readers, error) {
	r := &readers{}
	for i := range n {
		k := newSink(seed + uint64(i))
		one, err := newReader(k, encrypted)
		if err != nil {
			r.close()
			return nil, err
		}
		r.sinks, r.each = append(r.sinks, k), append(r.each, one)
	}
	return r, nil
}

// adopt hands the socket to the next reader.
func (r *readers) adopt(s *session, conn net.Conn, early []byte) error {
	i := int(r.next.Add(1)) % len(r.each)
	s.sink = r.sinks[i]
	return r.each[i].adopt(s, conn, early)
}

// begin makes t the trial of all sinks.
func (r *readers) begin(t *trial) {
	for _, k := range r.sinks {
		k.begin(t)
	}
}

func (r *readers) close() {
	for _, one := range r.each {
		one.close()
	}
}
