package api

import (
	"fmt"
	"strings"
	"testing"

	"liveroom/protocol"
)

// A reader of the ledger whose place is not in it is told so, instead of waiting for ever.
func TestAStrayedReaderIsToldSo(t *testing.T) {
	w := newWorld(t, nil)
	service := w.token(protocol.RoleService)
	for i := range 3 {
		res, body := w.call("POST", "/rooms/demo/gifts", service, fmt.Sprintf(`{"user":{"id":"u"},"id":"%d","gift":"rose"}`, i))
		if res.StatusCode != 200 {
			t.Fatal(body)
		}
	}
	for _, c := range []struct {
		query  string
		status int
		gifts  int
		part   string
	}{
		{"", 200, 3, ""},
		{"?after=2&ledger=l1", 200, 1, ""},
		{"?after=3", 200, 0, ""},
		{"?after=3&ledger=l1", 200, 0, ""},
		{"?after=4", 409, 0, "beyond the room's last gift, seq 3"},
		{"?after=41&ledger=l1", 409, 0, "beyond the room's last gift, seq 3"},
		{"?after=2&ledger=l0", 409, 0, `the ledger is l1, not "l0"`},
		{"?after=0&ledger=l0", 409, 0, "start over with after=0"},
	} {
		res, body := w.call("GET", "/rooms/demo/gifts"+c.query, service, "")
		if res.StatusCode != c.status || body["ledger"] != "l1" {
			t.Errorf("%s: %d %v", c.query, res.StatusCode, body)
			continue
		}
		if c.status == 200 {
			if got := len(body["gifts"].([]any)); got != c.gifts {
				t.Errorf("%s: %d gifts", c.query, got)
			}
			continue
		}
		if msg, _ := body["msg"].(string); body["reason"] != "conflict" || body["last_seq"] != 3.0 || !strings.Contains(msg, c.part) {
			t.Errorf("%s: %v", c.query, body)
		}
	}
}
