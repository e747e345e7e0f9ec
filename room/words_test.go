package room

import (
	"slices"
	"strings"
	"testing"

	"liveroom/internal/filter"
	"liveroom/protocol"
)

func words(all ...string) *protocol.WordList {
	l := &protocol.WordList{}
	for _, w := range all {
		word, action, _ := strings.Cut(w, "=")
		l.Words = append(l.Words, protocol.Word{Word: word, Action: protocol.FilterAction(action)})
	}
	return l
}

func (v *viewer) setWords(l *protocol.WordList) event {
	v.w.t.Helper()
	return v.moderate(protocol.ActionSettings, func(r *protocol.Request) { r.Settings = &Settings{Filter: l} })
}

// Each action does what it says, on every node and at once, by the platform's list and the room's.
func TestWordsAreActedOn(t *testing.T) {
	bus := newMemoryBus()
	unhurried := func(c *Config) { c.Gate = gateOf(t, unlimited) }
	n1, n2 := newWorld(t, bus, unhurried), newWorld(t, bus, unhurried)
	host, a, b := n1.join("demo", "host", as(protocol.RoleHost)), n1.join("demo", "a"), n2.join("demo", "b")
	platform, fault := filter.Compile(words("badplatform=refuse"), 10, 100)
	if fault != nil {
		t.Fatal(fault)
	}
	n1.hub.Filter(platform)
	n2.hub.Filter(platform)
	set := host.setWords(words("never=refuse", "stars=replace", "mine=sender_only", "later=hold", "hard=refuse"))
	wantCode(t, set, protocol.OK, "")
	wantCode(t, b.say("you NEVER know"), protocol.Forbidden, protocol.ReasonFiltered)
	wantCode(t, b.say("B.A.D.platform"), protocol.Forbidden, protocol.ReasonFiltered)
	wantCode(t, host.say("badplatform"), protocol.Forbidden, protocol.ReasonFiltered) // the platform's is for everybody
	wantCode(t, host.say("never mind"), protocol.OK, "")                              // the room's is not for its staff
	wantCode(t, b.say("s t a r s and later"), protocol.Degraded, protocol.ReasonHeld)
	shadowed := b.say("mine alone")
	wantCode(t, shadowed, protocol.OK, "")
	wantCode(t, b.say("oh stars"), protocol.OK, "")
	wantCode(t, a.say("fine"), protocol.OK, "")
	want := []string{"never mind", "oh *****", "fine"}
	eventually(t, func() bool { return len(a.seen("danmaku")) == len(want) && len(b.seen("danmaku")) == len(want) })
	if got := texts(a.seen("danmaku")); !slices.Equal(got, want) {
		t.Errorf("seen: %v", got)
	}
	if got := b.told("danmaku"); len(got) != 1 || got[0].Text != "mine alone" || got[0].MID != shadowed.MID {
		t.Errorf("the sender is shown %+v", got)
	}
	held := host.told("held")
	if len(held) != 1 || held[0].Text != "* * * * * and later" || held[0].Cause != "filter" {
		t.Errorf("held: %+v", held)
	}

	undone := host.moderate(protocol.ActionUndo, func(r *protocol.Request) { r.Seq = set.Seq })
	wantCode(t, undone, protocol.OK, "")
	wantCode(t, b.say("never again"), protocol.OK, "")
	n1.hub.Filter(nil)
	wantCode(t, a.say("badplatform"), protocol.OK, "")
}

// A list that is wrong changes nothing, and says where; a change of something else compiles none.
func TestWordsThatARoomDoesNotTake(t *testing.T) {
	w := newWorld(t, newMemoryBus(), nil)
	host := w.join("demo", "host", as(protocol.RoleHost))
	wantCode(t, host.setWords(words("good=refuse")), protocol.OK, "")
	many := make([]string, filter.RoomWords+1)
	for i := range many {
		many[i] = "word" + strings.Repeat("i", i) + "=hold"
	}
	for _, c := range []struct {
		list *protocol.WordList
		want string
	}{
		{words("ok=refuse", "!!=refuse"), "settings.filter.words[1].word"}, {words("a.*b=refuse"), "no regular expression"}, {words("x=burn"), "settings.filter.words[0].action"},
		{words(many...), "at most 500"}, {words(strings.Repeat("w", 200)+"=hold", "y=burn"), "words[1]"},
	} {
		e := host.setWords(c.list)
		wantCode(t, e, protocol.BadRequest, protocol.ReasonBadRequest)
		if !strings.Contains(e.Msg, c.want) {
			t.Errorf("%s, want %s", e.Msg, c.want)
		}
	}
	before := host.room.policy.Load().words
	wantCode(t, host.moderate(protocol.ActionClose, nil), protocol.OK, "")
	if after := host.room.policy.Load().words; after != before || before.Words() != 1 {
		t.Errorf("%p, then %p", before, after)
	}
	if got := host.room.Info().Filter; len(got.Words) != 1 || got.Words[0].Word != "good" {
		t.Errorf("told: %+v", got)
	}
	tried, err := host.room.Try("a G O O D text", nil)
	if err != nil || tried.Folded != "agodtext" || len(tried.Hits) != 1 || tried.Action != protocol.FilterRefuse || tried.Hits[0].Found != "G O O D" {
		t.Errorf("%+v, %v", tried, err)
	}
}
