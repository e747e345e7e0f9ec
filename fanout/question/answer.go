package question

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"liveroom/fanout/link"
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
	q     *Questions
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

// Answer sets who answers to a verb on this node, for [Questions.Ask] and [Questions.AskOthers], until the node closes. A verb is 1 to 32 of a-z, 0-9 and -; it has one Answerer, and a second one is an error.
func (q *Questions) Answer(verb string, h Answerer) error {
	if !validVerb(verb) {
		return fmt.Errorf("answer to %q: not a verb", verb)
	}
	a := &answering{q: q, verb: verb, h: h, queue: make(chan question, questionsQueue)}
	q.mu.Lock()
	switch {
	case q.closed:
		q.mu.Unlock()
		return link.ErrClosed
	case q.verbs[verb] != nil:
		q.mu.Unlock()
		return fmt.Errorf("answer to %s: there is somebody who does", verb)
	}
	q.verbs[verb] = a
	for range answersAtOnce { // under mu: Close waits for them
		q.workers.Go(func() { a.work(q.ctx) })
	}
	q.mu.Unlock()
	if _, err := q.link.Store.Subscribe(link.NodeSubject(q.node, verb), a.receive); err != nil {
		return fmt.Errorf("answer to %s: %w", verb, err)
	}
	// So that whoever hears of this node from now on is answered. When NATS is away, nats.go subscribes as it comes back.
	ctx, cancel := q.link.Bounded(q.ctx)
	defer cancel()
	_ = q.link.Store.FlushWithContext(ctx)
	return nil
}

// ownVerbs are what else a node is told on its subjects.
var ownVerbs = []string{"presence", "probe", verbParcel, "whole", "who"}

func validVerb(verb string) bool {
	return len(verb) >= 1 && len(verb) <= 32 && strings.Trim(verb, "abcdefghijklmnopqrstuvwxyz0123456789-") == "" && !slices.Contains(ownVerbs, verb)
}

func (q *Questions) answerer(verb string) *answering {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.verbs[verb]
}

// receive runs on the goroutine of a subscription and waits for nothing.
func (a *answering) receive(m *nats.Msg) {
	from, _ := sender(m)
	if !a.take(question{from: from, letter: m, reply: func(body []byte, err error) { a.reply(m, body, err) }}) {
		_ = m.RespondMsg(&nats.Msg{Header: nats.Header{faultHeader: {faultBusy}}}) // not connected: the asker has left as well
	}
}

// take queues the question; false when the queue is full, which is counted.
func (a *answering) take(q question) bool {
	select {
	case a.queue <- q:
		return true
	default:
		a.q.metrics.answers[faultBusy].Inc()
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
	result := resultAnswered
	if err != nil {
		result = faultFailed
	}
	a.q.metrics.answers[result].Inc()
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return // the asker's own time-out says it better, and at the same moment
	}
	q.reply(body, err)
}

func (a *answering) call(ctx context.Context, q question) ([]byte, error) {
	if q.letter != nil {
		var err error
		if q.payload, err = a.q.body(ctx, q.from, q.letter); err != nil {
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
		answer, _, err = a.q.letter(m.Reply, body, askTimeout)
	}
	if err != nil {
		text := []byte(err.Error())
		answer = &nats.Msg{Subject: m.Reply, Header: nats.Header{faultHeader: {faultFailed}}, Data: text[:min(len(text), faultText)]}
	}
	if err := a.q.link.Store.PublishMsg(answer); err != nil {
		a.q.link.Log.Debug("answer not sent", "verb", a.verb, "err", err)
	}
}
