package fanout

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// answers makes the node answer to a verb.
func answers(t testing.TB, f *Fabric, verb string, h Answerer) {
	t.Helper()
	if err := f.Answer(verb, h); err != nil {
		t.Fatal(err)
	}
}

// echo answers with the asker, the node and the payload.
func echo(f *Fabric) Answerer {
	return func(_ context.Context, from string, payload []byte) ([]byte, error) {
		return fmt.Append(nil, from, ">", f.cfg.NodeID, ":", string(payload)), nil
	}
}

// three opens nodes on one server that know each other.
func three(t *testing.T, o func(*server.Options)) []*Fabric {
	t.Helper()
	s := natsServerWith(t, o)
	var nodes []*Fabric
	for _, id := range []string{"n1", "n2", "n:3.x@y"} { // an id that needs escaping
		nodes = append(nodes, node(t, s, id))
	}
	for _, f := range nodes {
		eventually(t, "nodes know each other", func() bool { return len(f.Nodes()) == 2 })
	}
	return nodes
}

func TestAsk(t *testing.T) {
	nodes := three(t, nil)
	for _, f := range nodes {
		answers(t, f, "echo", echo(f))
	}
	ctx := testContext(t)
	for _, from := range nodes {
		for _, to := range nodes {
			got, err := from.Ask(ctx, to.cfg.NodeID, "echo", []byte("hi"))
			if want := from.cfg.NodeID + ">" + to.cfg.NodeID + ":hi"; err != nil || string(got) != want {
				t.Errorf("%q, %v; want %q", got, err, want)
			}
		}
		all, err := from.AskAll(ctx, "echo", nil)
		if err != nil || len(all) != 3 {
			t.Fatalf("%q, %v", all, err)
		}
		for node, got := range all {
			if want := from.cfg.NodeID + ">" + node + ":"; string(got) != want {
				t.Errorf("%q, want %q", got, want)
			}
		}
	}
}

func TestAskFailures(t *testing.T) {
	nodes := three(t, nil)
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
	if all, err := asker.AskAll(testContext(t), "unheard-of", nil); !errors.Is(err, ErrNoNode) || len(all) != 0 {
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
			nodes := three(t, func(o *server.Options) { o.MaxPayload = most })
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
			all, err := nodes[2].AskAll(testContext(t), "reverse", want)
			if err != nil || len(all) != 3 {
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

func TestTell(t *testing.T) {
	nodes := three(t, nil)
	heard := make(chan string, 16)
	for _, f := range nodes {
		answers(t, f, "news", func(_ context.Context, from string, payload []byte) ([]byte, error) {
			heard <- fmt.Sprint(from, ">", f.cfg.NodeID, ":", len(payload))
			return []byte("nobody asked"), nil
		})
	}
	for _, size := range []int{3, 2 << 20} {
		if err := nodes[0].Tell("news", make([]byte, size)); err != nil {
			t.Fatal(err)
		}
		var got []string
		for range nodes {
			got = append(got, receive(t, heard))
		}
		slices.Sort(got)
		if want := fmt.Sprintf("n1>n1:%d n1>n2:%d n1>n:3.x@y:%d", size, size, size); strings.Join(got, " ") != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if len(heard) > 0 {
		t.Error("told twice:", <-heard)
	}
}

func TestAnswerRefuses(t *testing.T) {
	f := openUnclosed(t, Config{NodeID: "n1", DataDir: t.TempDir()})
	for _, verb := range []string{"", "presence", "probe", "parcel", "whole", "who", "Upper", "a.b", "*", strings.Repeat("a", 33)} {
		if err := f.Answer(verb, echo(f)); err == nil {
			t.Errorf("verb %q passes", verb)
		}
	}
	answers(t, f, "once", echo(f))
	if err := f.Answer("once", echo(f)); err == nil {
		t.Error("two answer to one verb")
	}
	// Alone, and also without NATS: a node can ask itself.
	f.store.Close()
	if got, err := f.AskAll(testContext(t), "once", []byte("x")); err != nil || string(got["n1"]) != "n1>n1:x" {
		t.Errorf("%q, %v", got, err)
	}
	if err := f.Tell("once", nil); !errors.Is(err, ErrDisconnected) {
		t.Error("tell:", err)
	}
	closeNow(t, f)
	if err := f.Answer("late", echo(f)); !errors.Is(err, ErrClosed) {
		t.Error("answer:", err)
	}
	if _, err := f.Ask(testContext(t), "n1", "once", nil); !errors.Is(err, ErrClosed) {
		t.Error("ask:", err)
	}
}

// A question in a handler ends with the node that answers it.
func TestClosingEndsHandlers(t *testing.T) {
	f := openUnclosed(t, Config{NodeID: "n1", DataDir: t.TempDir()})
	began := make(chan struct{})
	answers(t, f, "hang", func(ctx context.Context, _ string, _ []byte) ([]byte, error) {
		close(began)
		<-ctx.Done()
		return nil, ctx.Err()
	})
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := f.Ask(testContext(t), "n1", "hang", nil); err == nil {
			t.Error("answered")
		}
	})
	receive(t, began)
	closeNow(t, f)
	wg.Wait()
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
	s := natsServerWith(b, nil)
	n1, n2 := open(b, nodeConfig(s, "n1")), open(b, nodeConfig(s, "n2"))
	answers(b, n2, "echo", echo(n2))
	for b.Loop() {
		if _, err := n1.Ask(context.Background(), "n2", "echo", nil); err != nil {
			b.Fatal(err)
		}
	}
}
