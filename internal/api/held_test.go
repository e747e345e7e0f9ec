package api

import (
	"fmt"
	"strings"
	"testing"

	"liveroom/protocol"
)

// What waits is read in pages and decided by the act of moderation; faults are told by field.
func TestHeldMessagesAreReadAndDecided(t *testing.T) {
	var b *loopback
	w := newWorld(t, func(c *Config) { b = c.Ledger.(*loopback) })
	host := w.token(protocol.RoleHost, "demo")
	if res, body := w.call("PUT", "/rooms/demo", host, `{"review":{"seconds":60,"then":"release"}}`); res.StatusCode != 200 || fmt.Sprint(body["review"]) != "map[seconds:60 then:release]" {
		t.Fatal(body)
	}
	for i := range 5 {
		m := protocol.Held{MID: fmt.Sprint("m", i), State: protocol.HeldWaiting, Cause: "filter", User: protocol.User{ID: "u"}, Text: fmt.Sprint("text ", i), Then: protocol.ActionDrop}
		if i == 1 {
			m.State, m.By = protocol.HeldDropped, "somebody"
		}
		value, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		b.held = append(b.held, HeldRecord{Seq: uint64(i + 1), Value: value})
	}
	for _, c := range []struct {
		query, mids string
		next        any
	}{
		{"", "m0 m2 m3 m4", nil}, {"?limit=2", "m0 m2", 3.0}, {"?limit=2&after=3", "m3 m4", nil}, {"?decided=true&limit=2", "m0 m1", 2.0}, {"?after=9", "", nil},
	} {
		res, body := w.call("GET", "/rooms/demo/held"+c.query, host, "")
		var mids []string
		list, _ := body["held"].([]any)
		for _, m := range list {
			mids = append(mids, m.(map[string]any)["mid"].(string))
		}
		if res.StatusCode != 200 || strings.Join(mids, " ") != c.mids || body["next"] != c.next {
			t.Errorf("%q: %d %v", c.query, res.StatusCode, body)
		}
	}
	for _, c := range []struct {
		mid, body string
		status    int
		part      string
	}{
		{"m0", `{"action":"release"}`, 200, ""},
		{"m0", `{"action":"burn"}`, 400, "action: allowed is release or drop"},
		{"m0", `{"act":"drop"}`, 400, `"act"`},
		{"m1", `{"action":"drop"}`, 409, "dropped by somebody"},
		{"nowhere", `{"action":"drop"}`, 404, "mid"},
		{strings.Repeat("m", 65), `{"action":"drop"}`, 400, "mid"},
	} {
		res, body := w.call("POST", "/rooms/demo/held/"+c.mid, host, c.body)
		if msg, _ := body["msg"].(string); res.StatusCode != c.status || !strings.Contains(msg, c.part) {
			t.Errorf("%s %s: %d %v", c.mid, c.body, res.StatusCode, body)
		}
	}
}
