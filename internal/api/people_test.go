package api

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"liveroom/limit"
	"liveroom/protocol"
	"liveroom/room"
)

// quiet is a session that nobody reads.
type quiet struct{}

func (quiet) Open([]byte)                 {}
func (quiet) Deliver(*protocol.Broadcast) {}
func (quiet) Release()                    {}
func (quiet) Control([]byte)              {}
func (quiet) Hold([]byte)                 {}
func (quiet) Await(f func()) bool         { f(); return true }
func (quiet) Aside(f func()) bool         { f(); return true }
func (quiet) Close(protocol.Refusal)      {}

func (w *world) join(user string, role protocol.Role) *room.Member {
	w.t.Helper()
	m, refusal := w.api.cfg.Hub.Join(context.Background(), room.JoinRequest{
		Session: quiet{}, Conn: &limit.Subject{Scope: limit.ScopeConn}, Hello: &protocol.Request{Op: protocol.OpHello, ID: "1", Room: "demo"},
		Who: room.Identity{User: user, Name: strings.ToUpper(user), Role: role},
	})
	if refusal != nil {
		w.t.Fatal(refusal)
	}
	w.t.Cleanup(m.Leave)
	return m
}

// Persons of two nodes are listed once each, staff first, then the newest, over all pages, with the windows of both; bad places are refused.
func TestPeopleOfAllNodes(t *testing.T) {
	var nodes [2]*world
	for i := range nodes {
		nodes[i] = newWorld(t, func(c *Config) {
			c.Nodes = func(_ context.Context, q Question, about string) [][]byte {
				answer, err := nodes[1-i].api.Tell(q, about)
				if err != nil {
					t.Error(err)
				}
				return [][]byte{answer}
			}
		})
	}
	for i := range 20 {
		nodes[i%2].join(fmt.Sprint("u", i), protocol.RoleViewer)
	}
	for i := range 8 { // on both, in another order
		nodes[(i+1)%2].join(fmt.Sprint("u", i), protocol.RoleViewer)
	}
	nodes[0].join("mod", protocol.RoleModerator)
	nodes[1].join("host", protocol.RoleHost)
	for _, w := range nodes {
		seen, ids, after := map[string]bool{}, []string{}, ""
		for range 30 {
			res, body := w.call(http.MethodGet, "/rooms/demo/people?limit=3&after="+url.QueryEscape(after), w.token(protocol.RoleHost, "demo"), "")
			if res.StatusCode != 200 || (body["show"] != nil) != (after == "" && len(w.show()) > 0) {
				t.Fatalf("%d %v", res.StatusCode, body)
			}
			for _, p := range body["people"].([]any) {
				p := p.(map[string]any)
				id := p["id"].(string)
				if seen[id] {
					t.Errorf("%s is listed twice", id)
				}
				seen[id], ids = true, append(ids, id)
				want := 1.0
				if len(id) == 2 && id[1] < '8' {
					want = 2
				}
				if p["sessions"] != want || p["name"] != strings.ToUpper(id) {
					t.Errorf("%v", p)
				}
			}
			if after, _ = body["next"].(string); after == "" {
				break
			}
		}
		if len(ids) != 22 || ids[0] != "host" || ids[1] != "mod" {
			t.Errorf("%d listed: %v", len(ids), ids)
		}
	}
	for query, part := range map[string]string{"after=x": "after: allowed is what next named", "limit=201": "limit: allowed is 1 to 200"} {
		if res, body := nodes[0].call(http.MethodGet, "/rooms/demo/people?"+query, nodes[0].token(protocol.RoleAdmin), ""); res.StatusCode != 400 || !strings.Contains(fmt.Sprint(body["msg"]), part) {
			t.Errorf("%s: %d %v", query, res.StatusCode, body)
		}
	}
	if res, _ := nodes[0].call(http.MethodGet, "/rooms/nowhere/people", nodes[0].token(protocol.RoleAdmin), ""); res.StatusCode != 404 {
		t.Errorf("a room that there never was: %d", res.StatusCode)
	}
}

// What a page of the people of a room of 10,000 costs, the first and one in the middle, with another node that has as many.
func BenchmarkPeople(b *testing.B) {
	var nodes [2]*world
	for i := range nodes {
		nodes[i] = newWorld(b, func(c *Config) {
			c.Nodes = func(_ context.Context, q Question, about string) [][]byte {
				answer, err := nodes[1-i].api.Tell(q, about)
				if err != nil {
					b.Error(err)
				}
				return [][]byte{answer}
			}
		})
		for n := range 5000 {
			nodes[i].join(fmt.Sprint("u", i, "-", n), protocol.RoleViewer)
		}
	}
	token := nodes[0].token(protocol.RoleHost, "demo")
	for _, pages := range []int{1, 26} {
		b.Run(fmt.Sprint("page ", pages), func(b *testing.B) {
			after := ""
			for range pages - 1 {
				_, body := nodes[0].call(http.MethodGet, "/rooms/demo/people?limit=200&after="+url.QueryEscape(after), token, "")
				after = body["next"].(string)
			}
			b.ReportAllocs()
			for b.Loop() {
				if res, body := nodes[0].call(http.MethodGet, "/rooms/demo/people?limit=200&after="+url.QueryEscape(after), token, ""); res.StatusCode != 200 || len(body["people"].([]any)) != 200 {
					b.Fatal(res.StatusCode, len(body["people"].([]any)))
				}
			}
		})
	}
}

func (w *world) show() []any {
	r, _ := w.api.cfg.Hub.Room("demo")
	out := []any{}
	for _, s := range r.Census().Shows() {
		out = append(out, s)
	}
	return out
}
