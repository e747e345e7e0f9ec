package main

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"

	"liveroom/internal/redistest"
)

var (
	chaosFor  = flag.Duration("chaos", 12*time.Second, "how long TestChaos breaks things")
	chaosSeed = flag.Uint64("chaos-seed", 1, "of what TestChaos breaks, and when")
)

// chaos is three nodes with what they share, all of them processes that can be killed.
type chaos struct {
	t     *testing.T
	rng   *rand.Rand
	nodes [3]*process
	dirs  [3]string
	at    [3]string // the nodes' addresses, which stay
	nats  []*child  // one, or a cluster
	redis *redistest.Server
	front *redistest.Proxy // before redis
	more  []string         // arguments of the nodes
}

// newChaos starts it, with so many NATS servers.
func newChaos(t *testing.T, servers int, more ...string) *chaos {
	c := &chaos{t: t, more: more, rng: rand.New(rand.NewPCG(*chaosSeed, 0)), redis: redistest.Start(t), nats: newNATSCluster(t, servers)}
	c.front = redistest.NewProxy(t, c.redis.Addr)
	startAll(c.nats)
	for i := range c.nodes {
		c.dirs[i], c.at[i] = t.TempDir(), freeAddress(t)
		c.startNode(i)
	}
	return c
}

const chaosSecret = "a secret that all of the nodes share"

func (c *chaos) startNode(i int) {
	c.t.Helper()
	c.nodes[i] = startProcess(c.t, c.dirs[i], append([]string{"-node-id", fmt.Sprintf("n%d", i+1), "-addr", c.at[i], "-auth-secret", chaosSecret,
		"-nats", natsURLs(c.nats), "-redis", c.front.URL(), "-log-level", "error"}, c.more...)...)
}

// rest waits as long as a fault lasts.
func rest(d time.Duration) { <-time.After(d) }

// node is one of the nodes, by chance.
func (c *chaos) node() int { return c.rng.IntN(len(c.nodes)) }

// with are the faults of every chaos, and those of one more. Each leaves everything as it was.
func (c *chaos) with(faults map[string]func()) map[string]func() {
	maps.Copy(faults, map[string]func(){
		"a node is killed": func() {
			i := c.node()
			c.nodes[i].kill()
			rest(300 * time.Millisecond)
			c.startNode(i)
		},
		"a node is stopped": func() {
			p := c.nodes[c.node()]
			p.signal(syscall.SIGSTOP)
			rest(1200 * time.Millisecond)
			p.signal(syscall.SIGCONT)
		},
		"NATS is killed": func() {
			for _, n := range c.nats {
				n.kill()
			}
			rest(700 * time.Millisecond)
			startAll(c.nats)
		},
	})
	return faults
}

// faults are what TestChaos does.
func (c *chaos) faults() map[string]func() {
	return c.with(map[string]func(){
		"Redis is killed": func() {
			c.redis.Kill()
			rest(time.Second)
			c.redis.Run()
		},
		"Redis writes nothing": func() {
			c.redis.Do("CONFIG", "SET", "min-replicas-to-write", "1")
			rest(2 * time.Second)
			c.redis.Do("CONFIG", "SET", "min-replicas-to-write", "0")
		},
		"Redis is slow": func() {
			c.front.Delay(60 * time.Millisecond)
			rest(2 * time.Second)
			c.front.Delay(0)
		},
		"connections say nothing": func() {
			at := c.at[c.node()]
			var open []net.Conn
			for range 200 {
				if conn, err := net.Dial("tcp", at); err == nil {
					open = append(open, conn)
				}
			}
			rest(time.Second)
			for _, conn := range open {
				conn.Close()
			}
		},
	})
}

// giver sends gifts one after the other, as a patient page does: the same id until there is an answer that stands, over
// whichever node takes it. The n-th gift has count n, by which the ledger's entry is known.
type giver struct {
	c     *chaos
	user  string
	token string
	rng   *rand.Rand
	ws    *websocket.Conn

	acked map[int]int64 // by count: the sequence
	open  int           // the count without an answer, 0 for none

	fickle bool  // gives one up now and then whose fate it does not know
	left   []int // those
}

// give goes on until stop, and then until its last gift is answered or ctx ends.
func (g *giver) give(ctx context.Context, stop <-chan struct{}) {
	for n := 1; n < 9999; n++ {
		g.open = n
		for {
			seq, ok := g.once(ctx, n)
			if ok {
				g.acked[n], g.open = seq, 0
				break
			}
			if ctx.Err() != nil {
				return
			}
			if g.fickle && g.rng.IntN(3) == 0 {
				g.left, g.open = append(g.left, n), 0
				break
			}
		}
		select {
		case <-stop:
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// once tries to give the n-th gift; false when it must be tried again.
func (g *giver) once(ctx context.Context, n int) (seq int64, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if g.ws == nil && !g.enter(ctx) {
		rest(100 * time.Millisecond)
		return 0, false
	}
	id := fmt.Sprintf("g%d", n)
	err := g.ws.Write(ctx, websocket.MessageText, fmt.Appendf(nil, `{"op":"gift","id":%q,"gift":"rose","count":%d}`, id, n))
	for err == nil {
		var events []event
		if events, err = g.read(ctx); err != nil {
			break
		}
		for _, e := range events {
			if e.kind() != "ack" || e.str("id") != id {
				continue
			}
			if e.num("code") == http.StatusOK {
				return e.num("seq"), true
			}
			rest(min(time.Duration(e.num("retry_after_ms"))*time.Millisecond, time.Second))
			return 0, false
		}
	}
	g.leave()
	return 0, false
}

func (g *giver) enter(ctx context.Context) bool {
	at := g.c.at[g.rng.IntN(len(g.c.at))]
	ws, _, err := websocket.Dial(ctx, "ws://"+at+"/ws", nil)
	if err != nil {
		return false
	}
	g.ws = ws
	ws.SetReadLimit(1 << 20)
	if err := ws.Write(ctx, websocket.MessageText, fmt.Appendf(nil, `{"op":"hello","id":"h","room":"demo","token":%q}`, g.token)); err == nil {
		if events, err := g.read(ctx); err == nil && len(events) > 0 && events[0].kind() == "welcome" {
			return true
		}
	}
	g.leave()
	return false
}

func (g *giver) read(ctx context.Context) (events []event, err error) {
	_, frame, err := g.ws.Read(ctx)
	if err == nil {
		err = json.Unmarshal(frame, &events)
	}
	return events, err
}

func (g *giver) leave() {
	if g.ws != nil {
		g.ws.CloseNow()
		g.ws = nil
	}
}

// entry is a gift as the ledger has it.
type entry struct {
	seq, prev int64
	user      string
	count     int
}

// ledgerFaults compares a ledger with what was acknowledged: nothing may be missing, twice, or under another number, and what
// nobody was told of may only be what is still open.
func ledgerFaults(ledger []entry, acked map[string]map[int]int64, open map[string][]int) (faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	have := map[string]map[int]int64{}
	last := int64(0)
	for _, e := range ledger {
		if e.seq <= last || e.prev != last {
			fault("%d follows %d, and says %d", e.seq, last, e.prev)
		}
		last = e.seq
		if have[e.user] == nil {
			have[e.user] = map[int]int64{}
		}
		if other, twice := have[e.user][e.count]; twice {
			fault("%s's gift %d is there twice: %d and %d", e.user, e.count, other, e.seq)
		}
		have[e.user][e.count] = e.seq
		if _, told := acked[e.user][e.count]; !told && !slices.Contains(open[e.user], e.count) {
			fault("%s's gift %d is there as %d, and was not acknowledged", e.user, e.count, e.seq)
		}
	}
	for user, gifts := range acked {
		for count, seq := range gifts {
			if got, ok := have[user][count]; !ok {
				fault("%s's gift %d was acknowledged as %d and is gone", user, count, seq)
			} else if got != seq {
				fault("%s's gift %d was acknowledged as %d and is %d", user, count, seq, got)
			}
		}
	}
	return faults
}

func TestALedgerThatIsBadIsCaught(t *testing.T) {
	t.Parallel()
	good := []entry{{5, 0, "a", 1}, {7, 5, "b", 1}, {9, 7, "a", 2}, {10, 9, "b", 2}}
	acked, open := map[string]map[int]int64{"a": {1: 5, 2: 9}, "b": {1: 7}}, map[string][]int{"b": {2}}
	if faults := ledgerFaults(good, acked, open); len(faults) > 0 {
		t.Fatalf("a good one: %q", faults)
	}
	for name, break_ := range map[string]func([]entry) []entry{
		"a gift is gone":          func(l []entry) []entry { return slices.Delete(l, 1, 2) },
		"the last is gone":        func(l []entry) []entry { return l[:2] },
		"a gift is there twice":   func(l []entry) []entry { return append(l, entry{11, 10, "a", 1}) },
		"a number is another":     func(l []entry) []entry { l[3].seq = 12; l[2].count, l[3].count, l[3].user = 3, 2, "a"; return l },
		"nobody's gift":           func(l []entry) []entry { return append(l, entry{11, 10, "c", 1}) },
		"the order is another":    func(l []entry) []entry { l[0], l[1] = l[1], l[0]; return l },
		"a number was used twice": func(l []entry) []entry { l[2].seq = 7; return l },
	} {
		if faults := ledgerFaults(break_(slices.Clone(good)), acked, open); len(faults) == 0 {
			t.Errorf("%s: not caught", name)
		}
	}
}

// ledgerOf reads the room's gifts by way of a node.
func (c *chaos) ledgerOf(p *process) (out []entry) {
	c.t.Helper()
	for after := int64(0); ; {
		page := p.call(c.t, http.MethodGet, fmt.Sprintf("/rooms/demo/gifts?limit=1000&after=%d", after), p.adminToken, "")
		gifts, ok := page.body["gifts"].([]any)
		if page.status != http.StatusOK || !ok {
			c.t.Fatalf("the ledger: %v", page)
		}
		for _, g := range gifts {
			e := event(g.(map[string]any))
			out = append(out, entry{e.num("seq"), e.num("prev"), e.in("user").str("id"), int(cmp.Or(e.num("count"), 1))})
		}
		if len(gifts) == 0 {
			return out
		}
		after = out[len(out)-1].seq
	}
}

// breakThings does one fault after the other for so long, and returns how often each was done.
func breakThings(t *testing.T, c *chaos, faults map[string]func(), long time.Duration) map[string]int {
	names := slices.Sorted(maps.Keys(faults))
	done := map[string]int{}
	for began, i := time.Now(), 0; time.Since(began) < long; i++ {
		if i%len(names) == 0 {
			c.rng.Shuffle(len(names), func(a, b int) { names[a], names[b] = names[b], names[a] })
		}
		name := names[i%len(names)]
		t.Logf("%5.1fs %s", time.Since(began).Seconds(), name)
		faults[name]()
		done[name]++
		rest(time.Duration(200+c.rng.IntN(600)) * time.Millisecond)
	}
	return done
}

// TestChaos kills, stops and starves nodes, Redis and NATS while people give: what was acknowledged is in the ledger, once,
// under its number, on every node, and all nodes are well afterwards.
func TestChaos(t *testing.T) {
	t.Parallel()
	c := newChaos(t, 1)
	ctx, cancel := context.WithTimeout(t.Context(), *chaosFor+2*time.Minute)
	defer cancel()
	stop := make(chan struct{})
	givers := make([]*giver, 8)
	var wg sync.WaitGroup
	for i := range givers {
		user := fmt.Sprintf("giver|%d", i)
		token := tokenFor(t, c.dirs[0], "-auth-secret", chaosSecret, "-sub", user)
		givers[i] = &giver{c: c, user: user, token: token, rng: rand.New(rand.NewPCG(*chaosSeed, uint64(i+1))), acked: map[int]int64{}}
		wg.Go(func() { givers[i].give(ctx, stop) })
	}
	done := breakThings(t, c, c.faults(), *chaosFor)
	close(stop)
	wg.Wait()
	acked, open, total := map[string]map[int]int64{}, map[string][]int{}, 0
	for _, g := range givers {
		g.leave()
		acked[g.user], open[g.user] = g.acked, []int{g.open}
		total += len(g.acked)
		if g.open != 0 {
			t.Errorf("%s's gift %d has no answer although everything is back", g.user, g.open)
		}
	}
	for i, p := range c.nodes {
		await(t, fmt.Sprintf("readiness of n%d", i+1), func() bool {
			_, body := p.askAdmin(t, http.MethodGet, "/readyz", "")
			return strings.Contains(body, `"status":"ok"`)
		})
		if faults := ledgerFaults(c.ledgerOf(p), acked, open); len(faults) > 0 {
			t.Errorf("the ledger by way of n%d: %q", i+1, faults[:min(len(faults), 10)])
		}
	}
	t.Logf("%d gifts acknowledged under %v", total, done)
	if total == 0 {
		t.Error("nobody could give")
	}
	for _, dir := range c.dirs {
		if left, _ := filepath.Glob(filepath.Join(dir, ".space-*")); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	}
}
