package room

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"liveroom/protocol"
)

func shieldOf(mode string) func(*protocol.Request) {
	return func(r *protocol.Request) { r.Settings = &Settings{Shield: &protocol.Shield{Mode: mode}} }
}

// A raid that comes over three nodes is seen, on all of them what newcomers and others say of it is held, and not what regulars say; staff
// sees it with a sample, undoes it in one act, and what was ended is not found again. It ends by itself.
func TestRaidOverNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := newMemoryBus()
		var nodes []*world
		for i := range 3 {
			nodes = append(nodes, newWorld(t, bus, func(c *Config) { c.Node, c.Gate = fmt.Sprint("n", i), gateOf(t, unlimited) }))
		}
		host := nodes[0].join("demo", "host", as(protocol.RoleHost))
		var regulars []*viewer
		for i := range 12 {
			regulars = append(regulars, nodes[i%3].join("demo", fmt.Sprint("regular", i)))
		}
		time.Sleep(15 * time.Minute)
		wantCode(t, host.moderate(protocol.ActionSettings, shieldOf("auto")), protocol.OK, "")
		shield := func(w *world) protocol.Shield {
			r, _ := w.hub.Room("demo")
			return r.Info().Shield
		}
		n := 0
		raid := func(accounts int) (shown, held int) {
			for range accounts {
				n++
				v := nodes[n%3].join("demo", fmt.Sprint("raider", n))
				switch e := v.say(fmt.Sprint("join group 8812 for free coins ", n)); {
				case e.Reason == string(protocol.ReasonHeld):
					held++
				case e.Code == int(protocol.OK):
					shown++
				}
				time.Sleep(100 * time.Millisecond)
			}
			return shown, held
		}
		for i, v := range regulars {
			v.say(fmt.Sprint("a talk among regulars, part ", i*i*7919))
			time.Sleep(200 * time.Millisecond)
		}
		shown, held := raid(40)
		if shown > 15 || held < 25 {
			t.Fatalf("%d shown, %d held", shown, held)
		}
		synctest.Wait()
		gone := len(regulars[0].seen("deleted"))
		if left := waits(nodes[1]); gone < shown-1 || left != held+gone { // what was on its way as the raid was seen stays
			t.Errorf("%d shown of the raid, %d taken back, %d held, %d wait", shown, gone, held, left)
		}
		for _, w := range nodes {
			if s := shield(w); s.Raid == nil || s.Raid.Sample == "" || s.Mode != "auto" {
				t.Fatalf("%s: %+v", w.hub.cfg.Node, s)
			}
		}
		wantCode(t, regulars[1].say("what is going on here tonight"), protocol.OK, "")
		wantCode(t, regulars[2].say("join group 8812 for free coins 3"), protocol.Degraded, protocol.ReasonHeld)
		wantCode(t, nodes[1].join("demo", "newcomer").say("good evening to all of you"), protocol.Degraded, protocol.ReasonHeld)

		r, _ := nodes[0].hub.Room("demo")
		seq := uint64(2) // the host's setting, and the shield's own
		entry, _ := r.audited(t.Context(), seq)
		if entry == nil || entry.By != "" || entry.Is == nil {
			t.Fatalf("the audit has %+v", entry)
		}
		wantCode(t, host.undo(seq), protocol.OK, "")
		synctest.Wait()
		if s := shield(nodes[2]); s.Raid != nil || s.Mode != "auto" {
			t.Fatalf("undone: %+v", s)
		}
		wantReleased(t, regulars[0], nodes[1], held+gone+2)
		if shown, held := raid(20); held != 0 || shown != 20 {
			t.Errorf("after it was found harmless %d are shown, %d held", shown, held)
		}
		wantCode(t, host.moderate(protocol.ActionSettings, shieldOf("on")), protocol.OK, "")
		wantCode(t, nodes[2].join("demo", "late").say("hello hello everybody"), protocol.Degraded, protocol.ReasonHeld)
		if left := waits(nodes[0]); left != 1 {
			t.Errorf("%d wait", left)
		}
		wantCode(t, host.moderate(protocol.ActionSettings, func(r *protocol.Request) {
			r.Settings = &Settings{Shield: &protocol.Shield{Mode: protocol.ShieldOff, Held: protocol.ActionDrop}}
		}), protocol.OK, "")
		synctest.Wait()
		if left := waits(nodes[0]); left != 0 {
			t.Errorf("after what was held was dropped %d wait", left)
		}
		wantCode(t, nodes[2].join("demo", "later").say("hello hello to everybody"), protocol.OK, "")
	})
}

// waits is how many messages wait for staff in the room, as a node knows.
func waits(w *world) int { return len(w.hub.queue.of("demo")) }

// wantReleased waits until a viewer was shown so many released messages, each with its own time, and none waits.
func wantReleased(t *testing.T, v *viewer, w *world, n int) {
	t.Helper()
	time.Sleep(time.Second)
	synctest.Wait()
	got := 0
	for _, e := range v.seen("danmaku") {
		if e.Released {
			got++
		}
	}
	if left := waits(w); got != n || left != 0 {
		t.Errorf("%d released of %d, %d wait", got, n, left)
	}
}

// Where tokens say when an account was made, young accounts are the newcomers, however long they wait in a room, and old ones are none, however
// lately they come.
func TestNewcomersByAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newMemoryBus(), func(c *Config) { c.Gate, c.Account = gateOf(t, unlimited), "since" })
		made := func(ago time.Duration) func(*JoinRequest) {
			return func(j *JoinRequest) {
				j.Who.Attrs = protocol.Attrs(fmt.Sprintf(`{"since":%d}`, time.Now().Add(-ago).Unix()))
			}
		}
		host := w.join("demo", "host", as(protocol.RoleHost))
		wantCode(t, host.moderate(protocol.ActionSettings, shieldOf("on")), protocol.OK, "")
		young := w.join("demo", "young", made(time.Hour))
		time.Sleep(time.Hour)
		wantCode(t, young.say("i am here for an hour"), protocol.Degraded, protocol.ReasonHeld)
		wantCode(t, w.join("demo", "old", made(8*24*time.Hour)).say("i have just come"), protocol.OK, "")
		wantCode(t, w.join("demo", "unknown").say("nobody knows since when"), protocol.Degraded, protocol.ReasonHeld)
	})
}
