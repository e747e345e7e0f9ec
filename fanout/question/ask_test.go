package question

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"go.uber.org/goleak"

	"liveroom/fanout/link"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// wait bounds everything that a test waits for.
const wait = 45 * time.Second

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 3*wait)
	t.Cleanup(cancel)
	return ctx
}

// answers makes the node answer to a verb.
func answers(t testing.TB, q *Questions, verb string, h Answerer) {
	t.Helper()
	if err := q.Answer(verb, h); err != nil {
		t.Fatal(err)
	}
}

// echo answers with the asker, the node and the payload.
func echo(q *Questions) Answerer {
	return func(_ context.Context, from string, payload []byte) ([]byte, error) {
		return fmt.Append(nil, from, ">", q.node, ":", string(payload)), nil
	}
}

// ids of three nodes; one needs escaping.
var ids = []string{"n1", "n2", "n:3.x@y"}

// three are nodes on one server that know each other. It takes messages of so many bytes.
func three(t testing.TB, most int32) []*Questions {
	t.Helper()
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true, MaxPayload: most, JetStream: true, StoreDir: t.TempDir(),
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(wait) {
		t.Fatal("nats server is not ready")
	}
	var nodes []*Questions
	for i, id := range ids {
		nodes = append(nodes, open(t, id, uint64(i+1), s.ClientURL()))
	}
	return nodes
}

// open makes a node, on a server of its own without a URL.
func open(t testing.TB, id string, incarnation uint64, urls ...string) *Questions {
	t.Helper()
	l, err := link.Open(t.Context(), link.Config{
		NodeID: id, URLs: urls, DataDir: t.TempDir(), DiskMost: 1 << 30, MemoryMost: 1 << 20,
		StoreTimeout: 2 * time.Second, ProbeTimeout: time.Minute, FollowEvery: time.Second, Metrics: link.NewMetrics(nil),
	}, slog.New(slog.NewTextHandler(t.Output(), nil)))
	t.Cleanup(l.Shut)
	if err != nil {
		t.Fatal(err)
	}
	others := slices.DeleteFunc(slices.Clone(ids), func(other string) bool { return other == id })
	q, err := New(l, id, incarnation, func() []string { return others }, NewMetrics(nil))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(q.Close)
	return q
}

func receive[T any](t testing.TB, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(wait):
		t.Fatal("nothing arrives")
		panic("unreachable")
	}
}

func TestAsk(t *testing.T) {
	nodes := three(t, 0)
	for _, f := range nodes {
		answers(t, f, "echo", echo(f))
	}
	ctx := testContext(t)
	for _, from := range nodes {
		for _, to := range nodes {
			got, err := from.Ask(ctx, to.node, "echo", []byte("hi"))
			if want := from.node + ">" + to.node + ":hi"; err != nil || string(got) != want {
				t.Errorf("%q, %v; want %q", got, err, want)
			}
		}
		all, err := from.AskOthers(ctx, "echo", nil)
		if err != nil || len(all) != 2 {
			t.Fatalf("%q, %v", all, err)
		}
		for node, got := range all {
			if want := from.node + ">" + node + ":"; node == from.node || string(got) != want {
				t.Errorf("%q, want %q", got, want)
			}
		}
	}
}

func TestAskFailures(t *testing.T) {
	nodes := three(t, 0)
	asker, other := nodes[0], nodes[1]
	hold := make(chan struct{})
	defer close(hold)
	for _, f := range nodes[:2] {
		answers(t, f, "fail", func(context.Context, string, []byte) ([]byte, error) { return nil, errors.New("out of paper") })
		answers(t, f, "hang", func(ctx context.Context, _ string, _ []byte) ([]byte, error) {
			select {
			case <-hold:
			case <-ctx.Done(): // the asker's patience has come along
			}
			return nil, ctx.Err()
		})
		answers(t, f, "sulk", func(context.Context, string, []byte) ([]byte, error) {
			<-hold
			return nil, nil
		})
	}
	for _, node := range []string{"n1", "n2"} {
		ask := func(ctx context.Context, verb string) error {
			_, err := asker.Ask(ctx, node, verb, nil)
			return err
		}
		short, cancel := context.WithTimeout(testContext(t), 50*time.Millisecond)
		defer cancel()
		if err := ask(testContext(t), "unheard-of"); !errors.Is(err, ErrNoNode) {
			t.Error("no such verb:", err)
		}
		if err := ask(short, "hang"); !errors.Is(err, ErrTimeout) || !errors.Is(err, context.DeadlineExceeded) {
			t.Error("silence:", err)
		}
		var remote *RemoteError
		if err := ask(testContext(t), "fail"); !errors.As(err, &remote) || *remote != (RemoteError{node, "fail", "out of paper"}) {
			t.Error("failure:", err)
		}
	}
	if _, err := asker.Ask(testContext(t), "nobody", "fail", nil); !errors.Is(err, ErrNoNode) {
		t.Error("no such node:", err)
	}
	if all, err := asker.AskOthers(testContext(t), "unheard-of", nil); !errors.Is(err, ErrNoNode) || len(all) != 0 {
		t.Error("nobody answers:", all, err)
	}
	if _, err := asker.Ask(testContext(t), "n2", "fail", make([]byte, parcelMost+1)); err == nil {
		t.Error("a payload without a bound")
	}
	// All of a verb's handlers taken and its queue full: told at once, and other verbs are answered.
	busy := make(chan error, answersAtOnce+questionsQueue+1)
	for range cap(busy) {
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), wait)
			defer cancel()
			_, err := asker.Ask(ctx, "n2", "sulk", nil)
			busy <- err
		}()
	}
	if err := receive(t, busy); !errors.Is(err, ErrBusy) {
		t.Error("full queue:", err)
	}
	answers(t, other, "echo", echo(other))
	if _, err := asker.Ask(testContext(t), "n2", "echo", nil); err != nil {
		t.Error("another verb:", err)
	}
	for range cap(busy) - 1 {
		select {
		case hold <- struct{}{}:
		case <-time.After(wait):
			t.Fatal("nobody waits")
		}
	}
	for range cap(busy) - 1 {
		if err := receive(t, busy); err != nil {
			t.Error("one that waited:", err)
		}
	}
}

// Payloads and answers of several megabytes, also over servers that allow little in one message.
func TestAskWithLargePayloads(t *testing.T) {
	for _, most := range []int32{8 << 10, 1 << 20} {
		t.Run(fmt.Sprint(most), func(t *testing.T) {
			nodes := three(t, most)
			want := make([]byte, min(100*int(most), 3<<20)+17)
			_, _ = rand.NewChaCha8([32]byte{1}).Read(want)
			for _, f := range nodes {
				answers(t, f, "reverse", func(_ context.Context, _ string, payload []byte) ([]byte, error) {
					payload = slices.Clone(payload)
					slices.Reverse(payload)
					return payload, nil
				})
			}
			reversed := slices.Clone(want)
			slices.Reverse(reversed)
			got, err := nodes[0].Ask(testContext(t), "n2", "reverse", want)
			if err != nil || !bytes.Equal(got, reversed) {
				t.Fatalf("%d bytes, %v", len(got), err)
			}
			all, err := nodes[2].AskOthers(testContext(t), "reverse", want)
			if err != nil || len(all) != 2 {
				t.Fatal(len(all), err)
			}
			for node, got := range all {
				if !bytes.Equal(got, reversed) {
					t.Errorf("the answer of %s is damaged", node)
				}
			}
		})
	}
}

func TestAnswerRefuses(t *testing.T) {
	q := open(t, "n1", 1)
	for _, verb := range []string{"", "presence", "probe", "parcel", "whole", "who", "Upper", "a.b", "*", strings.Repeat("a", 33)} {
		if err := q.Answer(verb, echo(q)); err == nil {
			t.Errorf("verb %q passes", verb)
		}
	}
	answers(t, q, "once", echo(q))
	if err := q.Answer("once", echo(q)); err == nil {
		t.Error("two answer to one verb")
	}
	// Also without NATS: a node can ask itself.
	q.link.Store.Close()
	if got, err := q.Ask(testContext(t), "n1", "once", []byte("x")); err != nil || string(got) != "n1>n1:x" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := q.Ask(testContext(t), "n2", "once", nil); !errors.Is(err, link.ErrDisconnected) {
		t.Error("another node:", err)
	}
	q.link.BeginClose()
	q.Close()
	if err := q.Answer("late", echo(q)); !errors.Is(err, link.ErrClosed) {
		t.Error("answer:", err)
	}
	if _, err := q.Ask(testContext(t), "n1", "once", nil); !errors.Is(err, link.ErrClosed) {
		t.Error("ask:", err)
	}
}

// A question in a handler ends with the node that answers it.
func TestClosingEndsHandlers(t *testing.T) {
	q := open(t, "n1", 1)
	began := make(chan struct{})
	answers(t, q, "hang", func(ctx context.Context, _ string, _ []byte) ([]byte, error) {
		close(began)
		<-ctx.Done()
		return nil, ctx.Err()
	})
	var asking sync.WaitGroup
	asking.Go(func() {
		if _, err := q.Ask(testContext(t), "n1", "hang", nil); err == nil {
			t.Error("answered")
		}
	})
	receive(t, began)
	q.link.BeginClose()
	q.Close()
	asking.Wait()
}

func TestParcelsAreForgotten(t *testing.T) {
	p := newParcels()
	now := time.Unix(1000, 0)
	id, err := p.offer(make([]byte, 10), now)
	if err != nil {
		t.Fatal(err)
	}
	for range parcelsAll/parcelMost - 1 {
		if _, err := p.offer(make([]byte, parcelMost), now.Add(time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := p.offer(make([]byte, parcelMost), now); !errors.Is(err, ErrBusy) {
		t.Error("no bound:", err)
	}
	if piece, ok := p.piece(id, 8, 5); !ok || len(piece) != 2 {
		t.Error(len(piece), ok)
	}
	p.forget(id)
	p.forget(id)
	if _, ok := p.piece(id, 0, 5); ok {
		t.Error("not forgotten")
	}
	p.expire(now.Add(2 * time.Second))
	if p.bytes != 0 || len(p.byID) != 0 {
		t.Errorf("%d bytes, %d parcels left", p.bytes, len(p.byID))
	}
}

func BenchmarkAsk(b *testing.B) {
	nodes := three(b, 0)
	answers(b, nodes[1], "echo", echo(nodes[1]))
	for b.Loop() {
		if _, err := nodes[0].Ask(context.Background(), "n2", "echo", nil); err != nil {
			b.Fatal(err)
		}
	}
}
