package question

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"

	"liveroom/fanout/link"
	"liveroom/internal/lock"
)

// Questions are what nodes ask one another. All methods may be called from any goroutine.
type Questions struct {
	// Fixed after New.
	link        *link.Link
	node        string
	incarnation uint64
	others      func() []string // the other nodes
	metrics     *Metrics
	parcels     *parcels
	ctx         context.Context // of the answers to other nodes, until Close
	stop        context.CancelFunc

	workers sync.WaitGroup

	mu     lock.Mutex[lock.Leaf]
	verbs  map[string]*answering
	closed bool
}

// New begins to hand out parcels. node and incarnation are this one's, others names the other nodes.
func New(l *link.Link, node string, incarnation uint64, others func() []string, metrics *Metrics) (*Questions, error) {
	q := &Questions{link: l, node: node, incarnation: incarnation, others: others, metrics: metrics, parcels: newParcels(), verbs: map[string]*answering{}}
	q.ctx, q.stop = context.WithCancel(context.Background())
	if _, err := l.Store.Subscribe(link.NodeSubject(node, verbParcel), q.handOut); err != nil {
		return nil, fmt.Errorf("subscribe to requests for parcels: %w", err)
	}
	return q, nil
}

// Expire forgets the parcels that nobody fetched in time.
func (q *Questions) Expire(now time.Time) { q.parcels.expire(now) }

// Close ends the answering and waits for it.
func (q *Questions) Close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.stop()
	q.workers.Wait()
}

// askTimeout bounds an Ask whose context has no deadline.
const askTimeout = 10 * time.Second

// Headers between nodes.
const (
	fromHeader    = "Lr-From"    // the sender's node id and incarnation
	timeoutHeader = "Lr-Timeout" // milliseconds that the asker waits; not an instant, because clocks differ
	faultHeader   = "Lr-Fault"   // one of the faults below; the text is the body
	parcelHeader  = "Lr-Parcel"  // the body is to be fetched, see parcels
)

const (
	faultBusy   = "busy"
	faultFailed = "failed"
)

var (
	// ErrNoNode says that no such node is there, or that it answers to no such verb.
	ErrNoNode = errors.New("fanout: no such node")
	// ErrTimeout says that a node did not answer in time; it may have acted.
	ErrTimeout = errors.New("fanout: no answer in time")
	// ErrBusy says that a node has more questions than it can take; it did not act.
	ErrBusy = errors.New("fanout: too many questions")
)

// RemoteError is what a node's [Answerer] returned, or that it could not be asked for its answer.
type RemoteError struct{ Node, Verb, Text string }

func (e *RemoteError) Error() string {
	return fmt.Sprintf("fanout: node %s failed to answer %s: %s", e.Node, e.Verb, e.Text)
}

// Ask sends a node a request and returns what its [Answerer] for the verb answered. A payload and an answer may have up to
// 64 MiB each, whatever NATS allows in one message. Without a deadline in ctx it waits ten seconds. This node may ask
// itself, which needs no NATS.
//
// An error is ErrNoNode (no such node, or it answers to no such verb; at once), ErrTimeout (silence, or ctx ended),
// ErrBusy (the node's handlers are all taken and its queue is full), ErrDisconnected (NATS is away, or went away), or
// a [*RemoteError]. Except after ErrNoNode and ErrBusy the handler may have run.
func (q *Questions) Ask(ctx context.Context, node, verb string, payload []byte) ([]byte, error) {
	ctx, cancel := boundAsk(ctx)
	defer cancel()
	answer, err := q.ask(ctx, node, verb, payload)
	q.metrics.asks[askResult(err)].Inc()
	if err != nil {
		return nil, fmt.Errorf("ask node %s for %s: %w", node, verb, err)
	}
	return answer, nil
}

// AskOthers asks all nodes that presence knows, without this one, at the same time, and returns the answers by node when each has
// answered or failed, or ctx ended. The error joins those of the nodes that are missing in the map, which is as good as
// it got. A node that starts or stops meanwhile may be missing.
func (q *Questions) AskOthers(ctx context.Context, verb string, payload []byte) (map[string][]byte, error) {
	ctx, cancel := boundAsk(ctx)
	defer cancel()
	nodes := q.others()
	answers, errs := make([][]byte, len(nodes)), make([]error, len(nodes))
	var wg sync.WaitGroup
	for i, node := range nodes {
		wg.Go(func() { answers[i], errs[i] = q.Ask(ctx, node, verb, payload) })
	}
	wg.Wait()
	got := make(map[string][]byte, len(nodes))
	for i, node := range nodes {
		if errs[i] == nil {
			got[node] = answers[i]
		}
	}
	return got, errors.Join(errs...)
}

func boundAsk(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, askTimeout)
}

func (q *Questions) ask(ctx context.Context, node, verb string, payload []byte) ([]byte, error) {
	if q.link.Closed() {
		return nil, link.ErrClosed
	}
	if node == q.node {
		return q.askSelf(ctx, verb, payload)
	}
	deadline, _ := ctx.Deadline()
	m, taken, err := q.letter(link.NodeSubject(node, verb), payload, time.Until(deadline))
	if err != nil {
		return nil, err
	}
	defer taken()
	m.Header.Set(timeoutHeader, strconv.FormatInt(time.Until(deadline).Milliseconds(), 10))
	reply, err := q.link.Store.RequestMsgWithContext(ctx, m)
	if err != nil {
		return nil, askFailure(err)
	}
	switch fault := reply.Header.Get(faultHeader); fault {
	case "":
		return q.body(ctx, node, reply)
	case faultBusy:
		return nil, ErrBusy
	default:
		return nil, &RemoteError{node, verb, string(reply.Data)}
	}
}

// askSelf hands the question to this node's own answerer, on its goroutines.
func (q *Questions) askSelf(ctx context.Context, verb string, payload []byte) ([]byte, error) {
	a := q.answerer(verb)
	if a == nil {
		return nil, ErrNoNode
	}
	type answer struct {
		body []byte
		err  error
	}
	done := make(chan answer, 1)
	if !a.take(question{ctx: ctx, from: q.node, payload: payload, reply: func(body []byte, err error) { done <- answer{body, err} }}) {
		return nil, ErrBusy
	}
	select {
	case got := <-done:
		if got.err != nil {
			return nil, &RemoteError{q.node, verb, got.err.Error()}
		}
		return got.body, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", ErrTimeout, ctx.Err())
	case <-q.link.Closing():
		return nil, link.ErrClosed
	}
}

// askFailure tells apart what nats.go returns for a request.
func askFailure(err error) error {
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return ErrNoNode
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), errors.Is(err, nats.ErrTimeout):
		return fmt.Errorf("%w: %w", ErrTimeout, err)
	default:
		return fmt.Errorf("%w: %w", link.ErrDisconnected, err)
	}
}

// Results of a question, as the asker counts them.
const (
	resultAnswered     = "answered"
	resultNoNode       = "no_node"
	resultTimeout      = "timeout"
	resultDisconnected = "disconnected"
)

func askResult(err error) string {
	switch {
	case err == nil:
		return resultAnswered
	case errors.Is(err, ErrNoNode):
		return resultNoNode
	case errors.Is(err, ErrTimeout):
		return resultTimeout
	case errors.Is(err, ErrBusy):
		return faultBusy
	case errors.Is(err, link.ErrDisconnected):
		return resultDisconnected
	}
	return faultFailed
}

// Metrics count questions.
type Metrics struct{ asks, answers map[string]prometheus.Counter } // by result

// NewMetrics registers the metrics with r, created at zero. With a nil r they are counted and shown to nobody.
func NewMetrics(r prometheus.Registerer) *Metrics {
	return &Metrics{
		asks:    link.Counters(r, "asks_total", "Questions to nodes.", "result", resultAnswered, resultNoNode, resultTimeout, faultBusy, resultDisconnected, faultFailed),
		answers: link.Counters(r, "answers_total", "Questions from nodes.", "result", resultAnswered, faultFailed, faultBusy),
	}
}
