package fanout

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

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
func (f *Fabric) Ask(ctx context.Context, node, verb string, payload []byte) ([]byte, error) {
	ctx, cancel := boundAsk(ctx)
	defer cancel()
	answer, err := f.ask(ctx, node, verb, payload)
	f.metrics.asks.WithLabelValues(askResult(err)).Inc()
	if err != nil {
		return nil, fmt.Errorf("ask node %s for %s: %w", node, verb, err)
	}
	return answer, nil
}

// AskAll asks this node and all that presence knows, at the same time, and returns the answers by node when each has
// answered or failed, or ctx ended. The error joins those of the nodes that are missing in the map, which is as good as
// it got. A node that starts or stops meanwhile may be missing.
func (f *Fabric) AskAll(ctx context.Context, verb string, payload []byte) (map[string][]byte, error) {
	ctx, cancel := boundAsk(ctx)
	defer cancel()
	return f.askEach(ctx, append(f.Nodes(), f.cfg.NodeID), verb, payload)
}

// AskOthers is [Fabric.AskAll] without this node.
func (f *Fabric) AskOthers(ctx context.Context, verb string, payload []byte) (map[string][]byte, error) {
	ctx, cancel := boundAsk(ctx)
	defer cancel()
	return f.askEach(ctx, f.Nodes(), verb, payload)
}

func (f *Fabric) askEach(ctx context.Context, nodes []string, verb string, payload []byte) (map[string][]byte, error) {
	answers, errs := make([][]byte, len(nodes)), make([]error, len(nodes))
	var wg sync.WaitGroup
	for i, node := range nodes {
		wg.Go(func() { answers[i], errs[i] = f.Ask(ctx, node, verb, payload) })
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

// Tell sends a request to the [Answerer] of every node, this one included, and waits for nothing: at most once, in no
// order. This node's own is called also when NATS is away, which is then ErrDisconnected.
func (f *Fabric) Tell(verb string, payload []byte) error {
	if a := f.answerer(verb); a != nil {
		a.take(question{ctx: context.Background(), from: f.cfg.NodeID, payload: payload, reply: func([]byte, error) {}})
	}
	m, _, err := f.letter(nodesSubject(verb), payload, askTimeout)
	if err != nil {
		return fmt.Errorf("tell all nodes %s: %w", verb, err)
	}
	if err := f.store.PublishMsg(m); err != nil {
		return fmt.Errorf("tell all nodes %s: %w: %w", verb, ErrDisconnected, err)
	}
	return nil
}

func boundAsk(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, askTimeout)
}

func (f *Fabric) ask(ctx context.Context, node, verb string, payload []byte) ([]byte, error) {
	if f.isClosed() {
		return nil, ErrClosed
	}
	if node == f.cfg.NodeID {
		return f.askSelf(ctx, verb, payload)
	}
	deadline, _ := ctx.Deadline()
	m, taken, err := f.letter(nodeSubject(node, verb), payload, time.Until(deadline))
	if err != nil {
		return nil, err
	}
	defer taken()
	m.Header.Set(timeoutHeader, strconv.FormatInt(time.Until(deadline).Milliseconds(), 10))
	reply, err := f.store.RequestMsgWithContext(ctx, m)
	if err != nil {
		return nil, askFailure(err)
	}
	switch fault := reply.Header.Get(faultHeader); fault {
	case "":
		return f.body(ctx, node, reply)
	case faultBusy:
		return nil, ErrBusy
	default:
		return nil, &RemoteError{node, verb, string(reply.Data)}
	}
}

// askSelf hands the question to this node's own answerer, on its goroutines.
func (f *Fabric) askSelf(ctx context.Context, verb string, payload []byte) ([]byte, error) {
	a := f.answerer(verb)
	if a == nil {
		return nil, ErrNoNode
	}
	type answer struct {
		body []byte
		err  error
	}
	done := make(chan answer, 1)
	q := question{ctx: ctx, from: f.cfg.NodeID, payload: payload, reply: func(body []byte, err error) { done <- answer{body, err} }}
	if !a.take(q) {
		return nil, ErrBusy
	}
	select {
	case got := <-done:
		if got.err != nil {
			return nil, &RemoteError{f.cfg.NodeID, verb, got.err.Error()}
		}
		return got.body, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", ErrTimeout, ctx.Err())
	case <-f.closing:
		return nil, ErrClosed
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
		return fmt.Errorf("%w: %w", ErrDisconnected, err)
	}
}

// askResults are the values of a metric's label; the first is for no error.
var askResults = [...]string{"answered", "no_node", "timeout", "busy", "disconnected", "failed"}

func askResult(err error) string {
	for i, is := range []error{nil, ErrNoNode, ErrTimeout, ErrBusy, ErrDisconnected} {
		if errors.Is(err, is) {
			return askResults[i]
		}
	}
	return askResults[len(askResults)-1]
}
