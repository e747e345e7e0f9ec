package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"liveroom/internal/hooktest"
)

var walletFor = flag.Duration("wallet", 10*time.Second, "how long TestWallet breaks things, TestWalletOverACluster twice as long")

// asWallet makes the test binary a platform's wallet: its address, its file, the share of calls that go wrong.
const asWallet = "LIVESERVER_AS_WALLET"

const walletSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// walletPatience is how long the nodes of TestWallet wait for an answer.
const walletPatience = 400 * time.Millisecond

// serveWallet runs until the process is killed.
func serveWallet(spec string) {
	var faults float64
	part := strings.Split(spec, "|")
	fmt.Sscan(part[2], &faults)
	fmt.Fprintln(os.Stderr, hooktest.Serve(part[0], part[1], walletSecret, faults, 2*walletPatience))
	os.Exit(1)
}

// newWallet is a wallet that can be killed, and has its money in a file; faults is the share of calls that go wrong.
func newWallet(t *testing.T, faults float64) *child {
	w := newChild(t, func(address, dir string) string {
		return fmt.Sprintf("%s=%s|%s|%g", asWallet, address, filepath.Join(dir, "wallet"), faults)
	})
	w.start()
	return w
}

// booksOf returns what a wallet knows.
func booksOf(w *child) (out struct {
	Rows  []hooktest.Row
	Wrong []string
}) {
	res, err := http.Get("http://" + w.address)
	if err != nil {
		w.t.Fatal(err)
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(&out); err != nil {
		w.t.Fatal(err)
	}
	return out
}

// bookFaults compares a wallet with a ledger: for each gift there the price was taken once, and for nothing else.
func bookFaults(ledger []entry, rows []hooktest.Row) (faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	paid := map[uint64]hooktest.Row{}
	taken, given := int64(0), int64(0)
	for _, r := range rows {
		switch r.State {
		case "confirmed":
			if other, twice := paid[r.Seq]; twice {
				fault("%d is paid twice: %+v and %+v", r.Seq, other, r)
			}
			paid[r.Seq] = r
			taken += r.Amount
		case "reserved":
			fault("money is held for nothing: %+v", r)
		}
	}
	for _, e := range ledger {
		given += int64(e.count) // a rose costs 1
		r, ok := paid[uint64(e.seq)]
		if !ok || r.User != e.user || r.Amount != int64(e.count) {
			fault("gift %+v is paid by %+v", e, r)
		}
		delete(paid, uint64(e.seq))
	}
	for _, r := range paid {
		fault("paid, and no gift: %+v", r)
	}
	if taken != given {
		fault("%d taken, %d given", taken, given)
	}
	return faults
}

func TestBooksThatDisagreeAreCaught(t *testing.T) {
	ledger := []entry{{5, 0, "a", 1}, {7, 5, "b", 2}}
	good := []hooktest.Row{{State: "confirmed", User: "a", Amount: 1, Seq: 5}, {State: "confirmed", User: "b", Amount: 2, Seq: 7}, {State: "cancelled", User: "c", Amount: 9}}
	if faults := bookFaults(ledger, good); len(faults) > 0 {
		t.Fatalf("good ones: %q", faults)
	}
	for name, change := range map[string]func([]hooktest.Row) []hooktest.Row{
		"a free gift": func(r []hooktest.Row) []hooktest.Row { return r[1:] },
		"money without a gift": func(r []hooktest.Row) []hooktest.Row {
			return append(r, hooktest.Row{State: "confirmed", User: "c", Amount: 1, Seq: 8})
		},
		"money held for ever":    func(r []hooktest.Row) []hooktest.Row { r[2].State = "reserved"; return r },
		"paid twice":             func(r []hooktest.Row) []hooktest.Row { return append(r, r[0]) },
		"another price":          func(r []hooktest.Row) []hooktest.Row { r[0].Amount = 2; return r },
		"somebody else's money":  func(r []hooktest.Row) []hooktest.Row { r[0].User = "b"; return r },
		"cancelled though given": func(r []hooktest.Row) []hooktest.Row { r[0].State = "cancelled"; return r },
	} {
		if faults := bookFaults(ledger, change(slices.Clone(good))); len(faults) == 0 {
			t.Errorf("%s: not caught", name)
		}
	}
}

// walletFaults are what TestWallet does to nodes and wallet, beside what the wallet's calls suffer all the time.
func walletFaults(c *chaos, w *child) map[string]func() {
	return c.with(map[string]func(){
		"the wallet is killed": func() {
			w.kill()
			rest(500 * time.Millisecond)
			w.start()
		},
		"the wallet is stopped": func() {
			w.cmd.Process.Signal(syscall.SIGSTOP)
			rest(2 * walletPatience)
			w.cmd.Process.Signal(syscall.SIGCONT)
		},
		"the wallet and a node are killed": func() {
			i := c.node()
			w.kill()
			c.nodes[i].kill()
			rest(300 * time.Millisecond)
			w.start()
			c.startNode(i)
		},
	})
}

// leaderFaults are what TestWalletOverACluster does to the servers that decide about gifts, and about what is being paid for.
func leaderFaults(c *chaos) map[string]func() {
	faults := map[string]func(){
		"the gifts' leader is stopped for 10 s": func() {
			leader := natsLeader(c.t, c.nats, "liveroom_gifts")
			leader.cmd.Process.Signal(syscall.SIGSTOP)
			rest(10 * time.Second)
			leader.cmd.Process.Signal(syscall.SIGCONT)
		},
	}
	for name, stream := range map[string]string{"the gifts' leader is killed": "liveroom_gifts", "the intents' leader is killed": "liveroom_intents"} {
		faults[name] = func() {
			leader := natsLeader(c.t, c.nats, stream)
			leader.kill()
			rest(3 * time.Second)
			leader.start()
		}
	}
	return faults
}

// TestWallet kills and stops nodes and the platform's wallet, some of whose answers are lost or late anyway.
func TestWallet(t *testing.T) {
	t.Parallel()
	settleUnder(t, 1, walletFaults, *walletFor)
}

// TestWalletOverACluster kills and stops the leaders of three NATS servers.
func TestWalletOverACluster(t *testing.T) {
	t.Parallel()
	settleUnder(t, 3, func(c *chaos, _ *child) map[string]func() { return leaderFaults(c) }, 2**walletFor)
}

// settleUnder does faults while people give, each gift twice and on two nodes at that: in the end the wallet has taken the price of each gift in
// the ledger once, and nothing else. A webhook, whose platform fails half of its calls, was told of each of them in order, by whichever node was there.
func settleUnder(t *testing.T, servers int, faults func(*chaos, *child) map[string]func(), long time.Duration) {
	w := newWallet(t, 0.1)
	box := newInbox(t)
	platform := httptest.NewServer(box)
	defer platform.Close()
	c := newChaos(t, servers, "-webhooks", "[{name: books, url: '"+platform.URL+"', kinds: [gift]}]", "-gifts-authority", "hook", "-hooks-secrets", walletSecret, "-hooks-gift-url", "http://"+w.address+"/hooks", "-hooks-gift-timeout", walletPatience.String())
	ctx, cancel := context.WithTimeout(t.Context(), long+2*time.Minute)
	defer cancel()
	service := tokenFor(t, c.dirs[0], "-auth-secret", chaosSecret, "-sub", "shop", "-role", "service")
	begin := webhookPlace(t, c.nodes[0], service)
	stop := make(chan struct{})
	givers := make([]*giver, 8)
	var wg sync.WaitGroup
	for i := range givers {
		user := fmt.Sprintf("giver|%d", i/2) // two for each: the same gifts under the same ids
		token := tokenFor(t, c.dirs[0], "-auth-secret", chaosSecret, "-sub", user)
		givers[i] = &giver{c: c, user: user, token: token, rng: rand.New(rand.NewPCG(*chaosSeed, uint64(i+1))), acked: map[int]int64{}, fickle: i >= 6}
		wg.Go(func() { givers[i].give(ctx, stop) })
	}
	done := breakThings(t, c, faults(c, w), long)
	close(stop)
	wg.Wait()
	acked, open, total := map[string]map[int]int64{}, map[string][]int{}, 0
	for _, g := range givers {
		g.leave()
		if g.open != 0 {
			t.Errorf("%s's gift %d has no answer although everything is back", g.user, g.open)
		}
		if acked[g.user] == nil {
			acked[g.user] = map[int]int64{}
		}
		open[g.user] = append(open[g.user], g.left...)
		for count, seq := range g.acked {
			if first, known := acked[g.user][count]; known && first != seq {
				t.Errorf("%s's gift %d was acknowledged as %d and as %d", g.user, count, first, seq)
			}
			acked[g.user][count] = seq
		}
	}
	for _, gifts := range acked {
		total += len(gifts)
	}
	await(t, "all gifts to be settled", func() bool {
		return !slices.ContainsFunc(booksOf(w).Rows, func(r hooktest.Row) bool { return r.State == "reserved" })
	})
	books, ledger := booksOf(w), c.ledgerOf(c.nodes[0])
	if faults := append(bookFaults(ledger, books.Rows), ledgerFaults(ledger, acked, open)...); len(faults) > 0 {
		t.Errorf("wallet and ledger: %q", faults[:min(len(faults), 10)])
	}
	if len(books.Wrong) > 0 {
		t.Errorf("the wallet was told what can't be: %q", books.Wrong)
	}
	delivered := len(box.awaitFeed(t, c.nodes[0], service, begin, "gift")["demo"])
	if delivered != len(ledger) {
		t.Errorf("%d gifts in the feed, %d in the ledger", delivered, len(ledger))
	}
	cancelled := 0
	for _, r := range books.Rows {
		if r.State == "cancelled" {
			cancelled++
		}
	}
	t.Logf("%d gifts acknowledged, %d in the ledger, %d given back, under %v", total, len(ledger), cancelled, done)
	if total == 0 {
		t.Error("nobody could give")
	}
}
