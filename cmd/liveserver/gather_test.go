package main

import (
	"fmt"
	"net/http"
	"testing"
)

// TestOneNodeTellsOfAll: a list, a room's rates and refusals, and a preview of limits are about all nodes, whichever is
// asked.
func TestOneNodeTellsOfAll(t *testing.T) {
	nodes := startNodes(t, 2)
	there := join(t, nodes[1].url, "quiet", "")
	here, there2 := join(t, nodes[0].url, "demo", ""), join(t, nodes[1].url, "demo", "")
	for _, c := range []*client{here, there2} {
		c.wait("both online", func(e event) bool {
			return c.welcome.in("room").num("online") == 2 || e.kind() == "online" && e.num("count") == 2
		})
		for i := range 4 { // the last is refused by danmaku-user-room
			c.ask("danmaku", fmt.Sprintf(`,"text":"number %d"`, i))
		}
	}
	there.ask("like", `,"count":3`)

	list := func() (ids []string, demo event) {
		rooms, _ := nodes[0].call(t, http.MethodGet, "/rooms", nodes[0].adminToken, "").body["rooms"].([]any) // none in a refusal
		for _, r := range rooms {
			r := event(r.(map[string]any))
			ids = append(ids, r.str("id"))
			if r.str("id") == "demo" {
				demo = r
			}
		}
		return ids, demo
	}
	await(t, "a list of both nodes' rooms", func() bool {
		ids, demo := list()
		return fmt.Sprint(ids) == "[demo quiet]" && demo.num("online") == 2 && demo.in("rates")["danmaku"] == 0.6
	})

	seen := event(nodes[0].call(t, http.MethodGet, "/rooms/demo", nodes[0].adminToken, "").body)
	if seen.in("rates")["danmaku"] != 0.6 || seen.in("rates")["refused"] != 0.2 || len(seen["refusals"].([]any)) != 2 {
		t.Errorf("the room is %v", seen)
	}

	body, _ := nodes[0].rulesWith(t, "danmaku-user-room", 0, 1)
	report := event(nodes[0].call(t, http.MethodPost, "/limits/preview", nodes[0].adminToken, body).body)
	if fmt.Sprint(report["nodes"]) != "[n1 n2]" || report.in("proposed").in("refused").in("users").num("count") != 2 {
		t.Errorf("the preview is about %v: %v", report["nodes"], report.in("proposed"))
	}
}
