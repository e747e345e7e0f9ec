package protocol

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestCustomEventsAreHeldToTheirShape(t *testing.T) {
	types := []string{"poll", "draw.end"}
	good := func() Custom { return Custom{ID: "a", Type: "poll", Data: json.RawMessage(`{"n": [1, 2]}`)} }
	for name, c := range map[string]struct {
		change func(*Custom)
		want   string // the beginning of the detail; "" for none
	}{
		"as it is":            {func(*Custom) {}, ""},
		"to a user":           {func(c *Custom) { c.To, c.User = ToUser, "auth0|7" }, ""},
		"to hosts":            {func(c *Custom) { c.To = ToHosts }, ""},
		"droppable":           {func(c *Custom) { c.Class = "danmaku" }, ""},
		"as long as may be":   {func(c *Custom) { c.Data = json.RawMessage(`"` + strings.Repeat("x", MaxCustomBytes-2) + `"`) }, ""},
		"long by spaces":      {func(c *Custom) { c.Data = json.RawMessage(`[` + strings.Repeat(" ", MaxCustomBytes) + `1]`) }, ""},
		"without data":        {func(c *Custom) { c.Data = nil }, ""},
		"without id":          {func(c *Custom) { c.ID = "" }, "id: "},
		"of no type":          {func(c *Custom) { c.Type = "pol" }, `type: allowed is one of poll, draw.end; received "pol"`},
		"too long":            {func(c *Custom) { c.Data = json.RawMessage(`"` + strings.Repeat("x", MaxCustomBytes-1) + `"`) }, "data: allowed are 4096 bytes"},
		"no UTF-8":            {func(c *Custom) { c.Data = json.RawMessage("\"\xff\"") }, "data: allowed is JSON in UTF-8"},
		"to nobody":           {func(c *Custom) { c.To = "all" }, "to: "},
		"to a user unnamed":   {func(c *Custom) { c.To = ToUser }, "user: "},
		"a user for nothing":  {func(c *Custom) { c.User = "u" }, "user: "},
		"of another class":    {func(c *Custom) { c.Class = "gift" }, "class: "},
		"droppable to a user": {func(c *Custom) { c.To, c.User, c.Class = ToUser, "u", "danmaku" }, "class: "},
	} {
		e := good()
		c.change(&e)
		err := e.Check(types)
		if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Detail, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	e := good()
	if err := e.Check(nil); err == nil || !strings.Contains(err.Detail, "events.types") {
		t.Errorf("no types: %v", err)
	}
}

func TestCustomEventOnTheWire(t *testing.T) {
	e := Custom{ID: "a", Type: "poll", Data: json.RawMessage(`{"html": "<b>&</b>"}`)}
	if err := e.Check([]string{"poll"}); err != nil {
		t.Fatal(err)
	}
	got := string(AppendCustom(nil, e.MID("svc", "demo"), &e, 7))
	want := `{"ev":"custom","mid":"` + e.MID("svc", "demo") + `","type":"poll","data":{"html":"<b>&</b>"},"ts":7}`
	if got != want || EventTS([]byte(got)) != 7 {
		t.Errorf("have %s\nwant %s", got, want)
	}
}

// A repeated event is known by its mid, on every node and after a restart: it follows from who, where and id alone.
func TestCustomMIDsAndContent(t *testing.T) {
	e := Custom{ID: "a", Type: "poll", Data: json.RawMessage(`1`), To: ToRoom, Class: "control"}
	seen := map[string]string{}
	for _, at := range [][3]string{{"svc", "demo", "a"}, {"svc", "demo", "b"}, {"svc", "*", "a"}, {"sv", "cdemo", "a"}, {"svc2", "demo", "a"}} {
		e.ID = at[2]
		mid := e.MID(at[0], at[1])
		if before, taken := seen[mid]; taken || !ValidID(mid) || mid != e.MID(at[0], at[1]) {
			t.Errorf("%v: %q, as %s", at, mid, before)
		}
		seen[mid] = strings.Join(at[:], " ")
	}
	first := e.Content()
	for _, change := range []func(*Custom){
		func(c *Custom) { c.Type = "x" }, func(c *Custom) { c.Data = json.RawMessage(`2`) }, func(c *Custom) { c.To = ToHosts },
		func(c *Custom) { c.User = "u" }, func(c *Custom) { c.Class = "danmaku" },
	} {
		other := e
		change(&other)
		if other.Content() == first {
			t.Errorf("%+v is the same content", other)
		}
	}
	if other := (Custom{ID: "z", Type: e.Type, Data: e.Data, To: e.To, Class: e.Class}); other.Content() != first {
		t.Error("the id is part of the content")
	}
}
