package model

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"liveroom/limit/cluster"
)

// Wire is how a node's connections to the store behave. The zero value is a
// link without delay or fault.
type Wire struct {
	// Delay is one way; Jitter is the mean of an exponential delay on top, so
	// that calls on different connections overtake each other.
	Delay, Jitter time.Duration
	// The rest are chances, 0 to 1, of each pipeline.
	Lost      float64 // the request vanishes; the caller runs into its time-out
	Unheard   float64 // it is executed and the answer vanishes
	Reset     float64 // it is executed and the caller gets an error at once
	Late      float64 // it is executed, but Stall later than it should be
	Twice     float64 // it is executed, and once more after Stall
	StallMean time.Duration
}

var (
	errReset   = errors.New("model: connection reset")
	errRefused = errors.New("model: connection refused")
)

// link is one node's way to the store's servers. Every pipeline goes on a
// connection of its own, as it may in a pool.
type link struct {
	wire Wire
	node *Node
	rng  *stream
	busy *sync.WaitGroup // pipelines under way, also those given up by their callers
}

// fate is what becomes of one pipeline, drawn at once so that a run does not
// depend on who runs first.
type fate struct {
	there, back, stall                 time.Duration
	lost, unheard, reset, late, doubly bool
}

func (l *link) fate() fate {
	l.rng.mu.Lock()
	defer l.rng.mu.Unlock()
	r, w := l.rng.rand, &l.wire
	return fate{
		there:   w.oneWay(r),
		back:    w.oneWay(r),
		stall:   time.Duration(r.ExpFloat64() * float64(w.StallMean)),
		lost:    r.Float64() < w.Lost,
		unheard: r.Float64() < w.Unheard,
		reset:   r.Float64() < w.Reset,
		late:    r.Float64() < w.Late,
		doubly:  r.Float64() < w.Twice,
	}
}

// oneWay draws a delay, with nanoseconds that no other event shares.
func (w *Wire) oneWay(r *rand.Rand) time.Duration {
	return w.Delay + time.Duration(r.ExpFloat64()*float64(w.Jitter)) + time.Duration(r.IntN(1000))
}

// reply is what a server answers to one pipeline.
type reply struct {
	calls   []cluster.Call // as executed
	life    string         // of a beat
	granted int64          // of the ways that are not ours
	err     error
}

// send has a server execute step and returns what it answered, or ctx's error
// when that ended before. step runs on another goroutine, perhaps after send
// has returned, perhaps twice: it must only touch what it owns.
func (l *link) send(ctx context.Context, s *server, step func() reply) reply {
	l.node.awake()
	f := l.fate()
	answer := make(chan reply, 1)
	if l.node.gone() {
		<-ctx.Done()
		return reply{err: ctx.Err()}
	}
	l.busy.Go(func() { l.carry(s, f, step, answer) })
	select {
	case r := <-answer:
		l.node.awake()
		return r
	case <-ctx.Done():
		return reply{err: ctx.Err()}
	}
}

// carry takes one pipeline to the server and its answer back.
func (l *link) carry(s *server, f fate, step func() reply, answer chan<- reply) {
	time.Sleep(f.there)
	if s.down() {
		answer <- reply{err: errRefused}
		return
	}
	if f.lost || s.hung() || l.node.cut() {
		return
	}
	if f.late {
		time.Sleep(f.stall)
	}
	r := step()
	switch {
	case f.reset:
		answer <- reply{err: errReset}
	case f.unheard || s.hung() || l.node.cut():
	default:
		time.Sleep(f.back)
		answer <- r
	}
	if f.doubly {
		time.Sleep(f.stall)
		step()
	}
}

// stream is a source of chance of its own, for one purpose.
type stream struct {
	mu   sync.Mutex
	rand *rand.Rand
}

func newStream(seed uint64, purpose, of int) *stream {
	return &stream{rand: rand.New(rand.NewPCG(seed, uint64(purpose)<<32|uint64(uint32(of))))}
}

func (s *stream) int64N(n int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rand.Int64N(n)
}
