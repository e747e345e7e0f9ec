package fanout

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"liveroom/protocol"
)

// Answerer answers a question of the node from. It runs on one of the verb's goroutines, so it may block, and should
// heed ctx, which ends when the asker has gone or this node closes. It may keep the payload and must not change it. It must
// not ask for its own verb: two nodes that do so wait for each other.
type Answerer func(ctx context.Context, from string, payload []byte) ([]byte, error)

// Bounds of one verb: how many questions are answered at once, and how many wait. The verbs do not wait for each other.
const (
	answersAtOnce  = 8
	questionsQueue = 256
)

// answering is a verb that this node answers to.
type answering struct {
	f     *Fabric
	verb  string
	h     Answerer
	queue chan question
}

type question struct {
	ctx     context.Context // the asker's, ends the answering
	from    string
	payload []byte
	letter  *nats.Msg // set instead of payload: read by the worker, because its body may have to be fetched
	reply   func(body []byte, err error)
}

// Answer sets who answers to a verb on this node, for [Fabric.Ask], [Fabric.AskAll] and [Fabric.Tell], until the Fabric
// closes. A verb is 1 to 32 of a-z, 0-9 and -; it has one Answerer, and a second one is an error.
func (f *Fabric) Answer(verb string, h Answerer) error {
	if !validVerb(verb) {
		return fmt.Errorf("answer to %q: not a verb", verb)
	}
	a := &answering{f: f, verb: verb, h: h, queue: make(chan question, questionsQueue)}
	f.mu.Lock()
	switch {
	case f.closed:
		f.mu.Unlock()
		return ErrClosed
	case f.verbs[verb] != nil:
		f.mu.Unlock()
		return fmt.Errorf("answer to %s: there is somebody who does", verb)
	}
	f.verbs[verb] = a
	for range answersAtOnce { // under mu: Close waits for them
		f.loops.Go(func() { a.work(f.ctx) })
	}
	f.mu.Unlock()
	for _, subject := range []string{nodeSubject(f.cfg.NodeID, verb), nodesSubject(verb)} {
		if _, err := f.store.Subscribe(subject, a.receive); err != nil {
			return fmt.Errorf("answer to %s: %w", verb, err)
		}
	}
	// So that whoever hears of this node from now on is answered. When NATS is away, nats.go subscribes as it comes back.
	_ = f.store.FlushTimeout(f.cfg.StoreTimeout)
	return nil
}

// ownVerbs are the fabric's own subjects of nodes.
var ownVerbs = [...]string{"presence", "probe", "parcel", "whole", "who"}

func validVerb(verb string) bool {
	for _, own := range ownVerbs {
		if verb == own {
			return false
		}
	}
	return len(verb) >= 1 && len(verb) <= 32 && strings.Trim(verb, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

func (f *Fabric) answerer(verb string) *answering {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.verbs[verb]
}

// receive runs on the goroutine of a subscription and waits for nothing.
func (a *answering) receive(m *nats.Msg) {
	from, incarnation := sender(m)
	if from == a.f.cfg.NodeID && incarnation == a.f.incarnation {
		return // Tell has been here already
	}
	reply := func(body []byte, err error) { a.reply(m, body, err) }
	if m.Reply == "" {
		reply = func([]byte, error) {}
	}
	if !a.take(question{from: from, letter: m, reply: reply}) && m.Reply != "" {
		_ = m.RespondMsg(&nats.Msg{Header: nats.Header{faultHeader: {faultBusy}}}) // not connected: the asker has left as well
	}
}

// take queues the question; false when the queue is full, which is counted.
func (a *answering) take(q question) bool {
	select {
	case a.queue <- q:
		return true
	default:
		a.f.metrics.answers.WithLabelValues(faultBusy).Inc()
		return false
	}
}

func (a *answering) work(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case q := <-a.queue:
			a.answer(ctx, q)
		}
	}
}

func (a *answering) answer(ctx context.Context, q question) {
	patience := askTimeout
	if q.letter != nil {
		if ms, err := strconv.Atoi(q.letter.Header.Get(timeoutHeader)); err == nil {
			patience = time.Duration(ms) * time.Millisecond
		}
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if q.ctx != nil {
		defer context.AfterFunc(q.ctx, cancel)()
	}
	body, err := a.call(ctx, q)
	result := "answered"
	if err != nil {
		result = faultFailed
	}
	a.f.metrics.answers.WithLabelValues(result).Inc()
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return // the asker's own time-out says it better, and at the same moment
	}
	q.reply(body, err)
}

func (a *answering) call(ctx context.Context, q question) ([]byte, error) {
	if q.letter != nil {
		var err error
		if q.payload, err = a.f.body(ctx, q.from, q.letter); err != nil {
			return nil, err
		}
	}
	return a.h(ctx, q.from, q.payload)
}

// faultText bounds the text of an error on its way to the asker.
const faultText = 1024

func (a *answering) reply(m *nats.Msg, body []byte, err error) {
	var answer *nats.Msg
	if err == nil {
		answer, _, err = a.f.letter(m.Reply, body, askTimeout)
	}
	if err != nil {
		text := []byte(err.Error())
		answer = &nats.Msg{Subject: m.Reply, Header: nats.Header{faultHeader: {faultFailed}}, Data: text[:min(len(text), faultText)]}
	}
	if err := a.f.store.PublishMsg(answer); err != nil {
		a.f.log.Debug("answer not sent", "verb", a.verb, "err", err)
	}
}

// nodeSubject is where a node is asked; nodesSubject where all are told.
func nodeSubject(node, verb string) string { return nodePrefix + protocol.Token(node) + "." + verb }
func nodesSubject(verb string) string      { return "lr.nodes." + verb }
