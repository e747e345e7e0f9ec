package fanout

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"testing"
	"time"

	"liveroom/protocol"
)

// victimDir tells a process of this test binary to be a node on that directory, to be killed.
const victimDir = "LIVEROOM_FANOUT_VICTIM"

// victim stores gifts and likes until it is killed, and says on stdout what it was promised.
func victim(dir string) {
	ctx := context.Background()
	f, err := Open(ctx, Config{NodeID: "n1", DataDir: dir, LikesGather: 5 * time.Millisecond}, slog.New(slog.DiscardHandler))
	if err != nil {
		panic(err)
	}
	if _, err := f.Feeds.Subscribe(ctx, "demo", victimEars{}); err != nil {
		panic(err)
	}
	for i := 0; ; i++ {
		r, err := f.Store.Gifts.StoreGift(ctx, "demo", "u", fmt.Sprint("c", i), fmt.Append(nil, "rose", i))
		if err != nil {
			panic(err)
		}
		fmt.Println("gift", i, r.Seq)
		if err := f.Store.Likes.AddLikes("demo", 3); err != nil {
			panic(err)
		}
	}
}

// victimEars says each like total that it is shown.
type victimEars struct{}

func (victimEars) Message(protocol.Class, []byte) {}
func (victimEars) Gift(protocol.StoredGift)       {}
func (victimEars) Settings([]byte, uint64)        {}
func (victimEars) Act(protocol.StoredAct)         {}

func (victimEars) Likes(total int64) { fmt.Println("likes", total, 0) }

func TestKilledNodeKeepsItsPromises(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	promised, likes := map[int]uint64{}, int64(0)
	for range 3 {
		gifts, total := killAfter(t, dir, 40)
		for i, seq := range gifts {
			if was, ok := promised[i]; ok && was != seq {
				t.Errorf("gift %d has sequence %d, and %d after a kill", i, was, seq)
			}
			promised[i] = seq
		}
		if total < likes {
			t.Errorf("likes fell from %d to %d over a kill", likes, total)
		}
		likes = total
	}

	f := open(t, Config{NodeID: "n1", DataDir: dir})
	for i, seq := range promised {
		r := storeGift(t, f, "demo", "u", fmt.Sprint("c", i), "again")
		if !r.Duplicate || r.Seq != seq {
			t.Errorf("gift %d again: %+v, want sequence %d", i, r, seq)
		}
		g, err := f.Store.Gifts.Gift(testContext(t), "demo", seq)
		if err != nil || string(g.Event) != fmt.Sprint("rose", i) {
			t.Errorf("gift %d: %+v, %v", i, g, err)
		}
	}
	// The last gift may be stored and neither answered nor re-published: it is in the ledger and in the room's opening.
	_, s := subscribe(t, f, "demo")
	var last uint64
	for {
		gifts, err := f.Store.Gifts.Gifts(testContext(t), "demo", last, 1000)
		if err != nil {
			t.Fatal(err)
		}
		if len(gifts) == 0 {
			break
		}
		for _, g := range gifts {
			if g.Prev != last {
				t.Fatalf("gift %d follows %d, said to follow %d", g.Seq, last, g.Prev)
			}
			last = g.Seq
		}
	}
	if s.Opening().LastGift != last || last < uint64(len(promised)) {
		t.Errorf("%d gifts promised, the ledger's last is %d, the opening's %d", len(promised), last, s.Opening().LastGift)
	}
	if total, err := f.Store.Likes.Likes(testContext(t), "demo"); err != nil || total < likes {
		t.Errorf("likes %d, %v; %d were shown", total, err, likes)
	}
}

// killAfter runs a victim, kills it without warning after some gifts and like totals, and returns what it was promised.
func killAfter(t *testing.T, dir string, lines int) (gifts map[int]uint64, likes int64) {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), victimDir+"="+dir)
	c.Stderr = t.Output()
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	gifts = map[int]uint64{}
	killed := false
	for in := bufio.NewScanner(out); in.Scan(); {
		var kind string
		var a int64
		var b uint64
		if n, _ := fmt.Sscan(in.Text(), &kind, &a, &b); n != 3 {
			continue // cut by the kill
		}
		if kind == "gift" {
			gifts[int(a)] = b
		} else {
			likes = a
		}
		if len(gifts) >= lines && likes > 0 && !killed {
			killed = true
			if err := c.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = c.Wait() // killed
	if !killed {
		t.Fatal("the victim ended by itself")
	}
	return gifts, likes
}
