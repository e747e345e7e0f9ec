package main

import (
	"fmt"
	"net/http"
	"testing"
)

// TestOneNodeTellsOfAll: a list, a room's rates and refusals, and a preview of limits are about all nodes, whichever is
// asked.
func TestOneNodeTellsOfAll(t *testing.T) {
	t.Parallel()
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

// TestOneNodeTellsOfAllTraffic: what the limits decided and whom they refused most is about all nodes, and counts before
// anybody looked.
func TestOneNodeTellsOfAllTraffic(t *testing.T) {
	t.Parallel()
	nodes := startNodes(t, 2, "-limits-file", rulesFile(t, slowly))
	for i, n := range nodes {
		c := join(t, n.url, "demo", "")
		for k := range 6 {
			c.ask("danmaku", fmt.Sprintf(`,"text":"number %d of %d"`, k, i))
		}
	}
	var got event
	count := func(outcome string) (sum int) {
		all, _ := got["series"].([]any)
		for _, s := range all {
			if s := event(s.(map[string]any)); s.str("rule") == "danmaku-user-room" && s.str("outcome") == outcome {
				for _, n := range s["n"].([]any) {
					sum += int(n.(float64))
				}
			}
		}
		return sum
	}
	await(t, "both nodes' traffic", func() bool {
		got = nodes[0].call(t, http.MethodGet, "/limits/traffic", nodes[0].adminToken, "").body
		top, _ := got["top"].([]any)
		return got.num("nodes") == 2 && count("allow") == 6 && count("reject") == 6 && len(top) == 2
	})
	for _, u := range got["top"].([]any) {
		if u := event(u.(map[string]any)); u.num("refused") < 1 || u.str("rule") != "danmaku-user-room" || u.str("room") != "demo" {
			t.Errorf("%v", u)
		}
	}
	if res := nodes[0].call(t, http.MethodGet, "/limits/traffic", nodes[0].hostToken, ""); res.status != http.StatusForbidden {
		t.Errorf("a host is answered %d", res.status)
	}
}
