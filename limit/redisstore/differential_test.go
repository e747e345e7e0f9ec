package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"liveroom/internal/redistest"
	"liveroom/limit"
	"liveroom/limit/cluster"
	"liveroom/limit/internal/ledger"
)

// argvClock is a script's clock that the test sets with each call. It stands for
// Redis TIME, and that alone: everything after it is what a server runs.
const argvClock = "local function clock() return tonumber(ARGV[2]) end"

// dumpText prints a key as ledger.Dump does. %.0f prints all digits.
const dumpText = `
local p = redis.call('GET', KEYS[1])
if not p then return '' end
local f = {cmsgpack.unpack(p)}
local out = {}
local function number(n) out[#out + 1] = string.format('%.0f ', n) end
local function name(s) out[#out + 1] = '<' .. s .. '> ' end
for i = 1, 10 do number(f[i]) end
name(f[11])
for i = 12, 14 do number(f[i]) end
for _, e in ipairs(f[15]) do
  out[#out + 1] = '\n'
  name(e[1])
  for i = 2, 11 do number(e[i]) end
end
for _, r in ipairs(f[16]) do
  out[#out + 1] = '\n'
  number(r[1]); number(r[2])
  if r[3] then name(r[3]); number(r[4]) end
end
return table.concat(out)`

// twins are the script and the ledger side by side.
type twins struct {
	t       *rapid.T
	ctx     context.Context
	client  *redis.Client
	scripts *scripts
	ledger  *ledger.Ledger
	dump    *redis.Script

	now   int64 // true time
	step  int64 // of the server's clock
	key   string
	nodes map[string]*twinNode
	past  []cluster.Call
}

// twinNode is what a node remembers of a key.
type twinNode struct {
	seq, received, returned, debt, hold int64
	seen, seenAt                        int64
}

func (w *twins) raw() int64 { return w.now + w.step }

// both carries a call out on both and compares all there is to compare.
func (w *twins) both(c cluster.Call) (cluster.Reply, error) {
	w.t.Helper()
	before := w.ledger.Dump(c.Key)
	if before == "" {
		w.client.Del(w.ctx, c.Key) // expired by the test's clock
	}
	other := c
	w.ledger.Do(w.ctx, []*cluster.Call{&other})
	v, err := w.client.EvalSha(w.ctx, w.scripts[c.Tiers[0].Kind].hash, []string{c.Key}, appendCall(nil, &c), w.raw()).Result()
	if err == nil {
		err = readReply(&c.Reply, v)
	}
	if err != nil && !errors.Is(err, cluster.ErrStale) {
		w.t.Fatalf("script: %v\n%+v", err, c)
	}
	if !errors.Is(err, other.Err) {
		w.t.Fatalf("script: %v, ledger: %v\n%+v", err, other.Err, c)
	}
	if err == nil && c.Reply != other.Reply {
		w.t.Fatalf("script: %+v\nledger: %+v\n%+v", c.Reply, other.Reply, c)
	}
	have, err2 := w.dump.Run(w.ctx, w.client, []string{c.Key}).Text()
	if err2 != nil {
		w.t.Fatal(err2)
	}
	if want := w.ledger.Dump(c.Key); have != want {
		w.t.Fatalf("script: %s\nledger: %s\n%+v", have, want, c)
	}
	if have != "" {
		w.checkLife(c.Key, have != before)
	}
	if err := w.ledger.Check(); err != nil {
		w.t.Fatal(err)
	}
	return c.Reply, err
}

// checkLife compares the times to live where the call has just set them; the
// real one has run on a little.
func (w *twins) checkLife(key string, written bool) {
	life := w.client.PTTL(w.ctx, key).Val()
	if life <= 0 {
		w.t.Fatalf("%s lives %s", key, life)
	}
	for _, k := range w.ledger.Keys() {
		if written && k.Name == key && (life-k.Lives).Abs() > time.Second {
			w.t.Fatalf("%s lives %s, want %s", key, life, k.Lives)
		}
	}
}

func drawTerms(t *rapid.T, kind limit.Kind) []limit.Terms {
	var tiers []limit.Terms
	for i := range rapid.IntRange(1, 3).Draw(t, "tiers") {
		name := fmt.Sprint("tier", i)
		terms := limit.Terms{Kind: kind, Size: rapid.OneOf(rapid.Int64Range(1, 20), rapid.Int64Range(1, 1<<40)).Draw(t, name+".size")}
		terms.Start = rapid.SampledFrom([]int64{terms.Size, terms.Size / 2, 0}).Draw(t, name+".start")
		switch kind {
		case limit.KindBucket:
			terms.Num = rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(1, 9), rapid.Int64Range(1, 1<<40)).Draw(t, name+".num")
			terms.Den = rapid.OneOf(rapid.Just(int64(1)), rapid.Int64Range(1, 3_000_000), rapid.Int64Range(1, 1<<52)).Draw(t, name+".den")
			terms.Den = max(min(terms.Den, 1<<52/terms.Size), 1)
		case limit.KindSlots:
		default:
			terms.Length = time.Duration(rapid.OneOf(rapid.Int64Range(1000, 3_000_000), rapid.Int64Range(1000, 69_000_000_000_000)).Draw(t, name+".length")) * time.Microsecond
		}
		tiers = append(tiers, terms)
	}
	return tiers
}

func (w *twins) wander() {
	w.now += rapid.OneOf(rapid.Int64Range(0, 50_000), rapid.Int64Range(0, 1_000_000), rapid.Int64Range(0, 20_000_000), rapid.Int64Range(0, 4_000_000_000)).Draw(w.t, "passes")
	if rapid.IntRange(0, 9).Draw(w.t, "steps") == 0 {
		w.step = rapid.Int64Range(-4_000_000_000, 4_000_000_000).Draw(w.t, "step")
	}
}

// amount is small, or anything there can be.
func (w *twins) amount(name string, most int64) int64 {
	return rapid.OneOf(rapid.Int64Range(0, min(5, most)), rapid.Int64Range(0, most)).Draw(w.t, name)
}

// next is a call as a node makes it, or one that lies.
func (w *twins) next(tiers []limit.Terms) cluster.Call {
	t := w.t
	name := rapid.SampledFrom([]string{"a#1", "a#2", "b#1", "c#1"}).Draw(t, "node")
	n := w.nodes[name]
	if n == nil || rapid.IntRange(0, 30).Draw(t, "restart") == 0 {
		n = &twinNode{}
		w.nodes[name] = n
	}
	n.seq++
	size := tiers[0].Size
	c := cluster.Call{Key: w.key, Node: name, Seq: n.seq, Tiers: tiers, Want: rapid.IntRange(0, len(tiers)-1).Draw(t, "want"),
		Stay: rapid.Bool().Draw(t, "stay"), Lease: time.Duration(rapid.Int64Range(1000, 900_000).Draw(t, "lease")) * time.Microsecond}
	switch kind := tiers[0].Kind; {
	case kind == limit.KindSlots:
		c.Op = rapid.SampledFrom([]cluster.Op{cluster.OpSlot, cluster.OpSlot, cluster.OpFree, cluster.OpReset}).Draw(t, "op")
		c.Seq = rapid.Int64Range(1, 6).Draw(t, "slot")
	case kind == limit.KindBucket:
		c.Op = rapid.SampledFrom([]cluster.Op{cluster.OpDraw, cluster.OpDraw, cluster.OpDraw, cluster.OpClaim, cluster.OpGive, cluster.OpReset}).Draw(t, "op")
	default:
		c.Op = rapid.SampledFrom([]cluster.Op{cluster.OpDraw, cluster.OpDraw, cluster.OpDraw, cluster.OpReset}).Draw(t, "op")
	}
	spent := w.amount("spent", n.hold)
	back := w.amount("back", n.hold-spent)
	n.hold -= spent + back
	n.returned += back
	if rapid.IntRange(0, 9).Draw(t, "indebted") == 0 {
		n.debt += w.amount("debt", size)
	}
	c.Received, c.Hold, c.Returned, c.Debt = n.received, n.hold, n.returned, n.debt
	if rapid.IntRange(0, 19).Draw(t, "lies") == 0 {
		c.Received, c.Hold, c.Returned = w.amount("received", 1<<41), w.amount("hold", 1<<40), w.amount("returned", 1<<41)
	}
	c.Ask = w.amount("ask", size)
	c.Least = w.amount("least", size)
	c.Level = w.amount("level", size)
	c.Floor = rapid.SampledFrom([]int64{0, 0, size / 3}).Draw(t, "floor")
	c.Owned, c.Lost = rapid.IntRange(0, 5).Draw(t, "owned") == 0, rapid.IntRange(0, 5).Draw(t, "lost") == 0
	if rapid.IntRange(0, 3).Draw(t, "ousts") == 0 {
		c.Steal = rapid.SampledFrom([]string{"", "a#1", "b#1"}).Draw(t, "steal")
		c.Free = rapid.SampledFrom([]string{"", "a#1", "b#1"}).Draw(t, "free")
	}
	if n.seen > 0 && rapid.Bool().Draw(t, "tells") {
		c.Seen, c.LeastSince = n.seen, time.Duration(w.now-n.seenAt)*time.Microsecond
		c.MostSince = c.LeastSince + time.Duration(rapid.Int64Range(0, 300_000).Draw(t, "most"))*time.Microsecond
	}
	return c
}

// heard lets the node remember an answer, unless it is lost.
func (w *twins) heard(c *cluster.Call, r cluster.Reply) {
	if n := w.nodes[c.Node]; n != nil && rapid.IntRange(0, 4).Draw(w.t, "reply lost") > 0 {
		n.received, n.seen, n.seenAt = c.Received+r.Granted, r.Now, w.now
		if n.hold = min(c.Hold+r.Granted, 1<<40); c.Op != cluster.OpDraw {
			n.hold = 0
		}
	}
}

func TestScriptIsLedger(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := server.Client()
	ctx := t.Context()
	s := assemble(argvClock)
	for _, one := range s {
		if err := client.ScriptLoad(ctx, one.text).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for kind := range limit.KindSlots + 1 {
		t.Run(fmt.Sprint("kind", kind), rapid.MakeCheck(func(t *rapid.T) {
			w := &twins{t: t, ctx: ctx, client: client, scripts: s, dump: redis.NewScript(dumpText), now: 1_790_000_000_000_000, key: "lr:{room:x}:r", nodes: map[string]*twinNode{}}
			w.ledger = ledger.New(func() time.Time { return time.UnixMicro(w.raw()) })
			client.FlushAll(ctx)
			tiers := drawTerms(t, kind)
			for range rapid.IntRange(1, 40).Draw(t, "calls") {
				w.wander()
				switch rapid.IntRange(0, 19).Draw(t, "event") {
				case 0:
					client.FlushDB(ctx)
					w.ledger.Wipe("ledger")
				case 1:
					tiers = drawTerms(t, kind) // new rules
				case 2:
					other := drawTerms(t, rapid.SampledFrom([]limit.Kind{limit.KindBucket, limit.KindFixed, limit.KindLog}).Draw(t, "kind"))
					if c := w.next(other); c.Validate() == nil {
						_, _ = w.both(c)
					}
				case 3, 4:
					if len(w.past) > 0 { // again, or late
						_, _ = w.both(w.past[rapid.IntRange(max(len(w.past)-4, 0), len(w.past)-1).Draw(t, "again")])
					}
				default:
					c := w.next(tiers)
					if err := c.Validate(); err != nil {
						t.Fatal(err)
					}
					w.past = append(w.past, c)
					if r, err := w.both(c); err == nil {
						w.heard(&c, r)
					}
				}
			}
		}))
	}
}

// TestScriptsAreSmall keeps in mind that a replica may be sent each of them.
func TestScriptsAreSmall(t *testing.T) {
	t.Parallel()
	for kind, s := range assemble(part("clock")) {
		if len(s.text) > 16<<10 || strings.Contains(s.text, "tostring(") || strings.Contains(s.text, "EXPIRE'") {
			t.Errorf("kind %d: %d bytes", kind, len(s.text))
		}
	}
}
