package api

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"liveroom/internal/journal"
	"liveroom/internal/webhook"
	"liveroom/protocol"
)

// reader calls as somebody, about one consumer.
type reader struct {
	*world
	bearer string
}

// want makes a call and returns its body; the answer has the status, and the part in it.
func (r reader) want(method, path, body string, status int, part string) map[string]any {
	r.t.Helper()
	res, got := r.call(method, path, r.bearer, body)
	if res.StatusCode != status || !strings.Contains(fmt.Sprint(got), part) {
		r.t.Fatalf("%s %s %s: %d %v, want %d %q", method, path, body, res.StatusCode, got, status, part)
	}
	return got
}

func ids(page map[string]any) string {
	var out []string
	for _, e := range page["events"].([]any) {
		out = append(out, e.(map[string]any)["id"].(string))
	}
	return strings.Join(out, " ")
}

// A consumer's place is kept: it reads on from what it has acknowledged, whoever asks, and can be moved, paused and taken away.
func TestConsumersAreReadOn(t *testing.T) {
	w, s, _ := newShelfWorld(t, 4)
	r := reader{w, w.token(protocol.RoleService)}
	r.want("GET", "/consumers/books", "", 404, "consumer")
	r.want("GET", "/events?consumer=books", "", 404, "consumer")
	r.want("PUT", "/consumers/books", `{}`, 201, "books")
	if page := r.want("GET", "/events?consumer=books", "", 200, ""); ids(page) != "" {
		t.Errorf("a new one begins with what comes: %v", page)
	}
	s.give()
	page := r.want("GET", "/events?consumer=books&wait=25", "", 200, "")
	if ids(page) != "g5" {
		t.Fatalf("%v", page)
	}
	if again := r.want("GET", "/events?consumer=books", "", 200, ""); ids(again) != "g5" {
		t.Errorf("what is not acknowledged comes again: %v", again)
	}
	at := r.want("GET", "/consumers/books", "", 200, "events:1")["cursor"]
	next := page["next"]
	r.want("POST", "/consumers/books/ack", fmt.Sprintf(`{"cursor":%q,"after":%q}`, next, at), 200, "books")
	r.want("POST", "/consumers/books/ack", fmt.Sprintf(`{"cursor":%q,"after":%q}`, next, at), 409, "somebody else")
	r.want("POST", "/consumers/books/ack", fmt.Sprintf(`{"cursor":%q}`, next), 200, "books")
	r.want("POST", "/consumers/books/ack", `{"cursor":"x"}`, 400, "cursor")
	r.want("POST", "/consumers/other/ack", fmt.Sprintf(`{"cursor":%q}`, next), 404, "consumer")
	if page := r.want("GET", "/events?consumer=books", "", 200, ""); ids(page) != "" {
		t.Errorf("what is acknowledged comes again: %v", page)
	}
	r.want("GET", "/consumers/books", "", 200, "events:0 seconds:0")

	r.want("PUT", "/consumers/books", `{"from":"oldest","rooms":["demo"],"kinds":["gift"]}`, 200, "demo")
	if page := r.want("GET", "/events?consumer=books", "", 200, ""); ids(page) != "g1 g3 g5" {
		t.Errorf("replayed: %v", page)
	}
	r.want("PUT", "/consumers/books", `{"since":4,"rooms":[]}`, 200, "")
	if page := r.want("GET", "/events?consumer=books", "", 200, ""); ids(page) != "g4 g5" {
		t.Errorf("since: %v", page)
	}
	r.want("PUT", "/consumers/books", `{"paused":true}`, 200, "paused:true")
	if page := r.want("GET", "/events?consumer=books", "", 200, "paused:true"); ids(page) != "" {
		t.Errorf("paused: %v", page)
	}
	r.want("PUT", "/consumers/books", `{"paused":false}`, 200, "paused:false")
	if list := r.want("GET", "/consumers", "", 200, "books"); len(list["consumers"].([]any)) != 1 {
		t.Error(list)
	}
	r.want("DELETE", "/consumers/books", "", 200, "")
	r.want("DELETE", "/consumers/books", "", 404, "")
}

// Somebody who changes a consumer at the same time loses nothing, and a change that is not possible says why.
func TestConsumersThatAreRefused(t *testing.T) {
	w, s, _ := newShelfWorld(t, 1)
	all, demo := reader{w, w.token(protocol.RoleService)}, reader{w, w.token(protocol.RoleService, "demo")}
	reader{w, w.token(protocol.RoleHost, "demo")}.want("GET", "/consumers", "", 403, "")
	all.want("PUT", "/consumers/all", `{}`, 201, "")
	demo.want("PUT", "/consumers/mine", `{}`, 201, "rooms:[demo]")
	demo.want("PUT", "/consumers/more", `{"rooms":["other"]}`, 403, "")
	for _, call := range [][2]string{{"GET", "/consumers/all"}, {"DELETE", "/consumers/all"}, {"GET", "/events?consumer=all"}} {
		demo.want(call[0], call[1], "", 403, "")
	}
	demo.want("PUT", "/consumers/all", `{"paused":true}`, 403, "")
	if list := demo.want("GET", "/consumers", "", 200, "mine"); len(list["consumers"].([]any)) != 1 {
		t.Errorf("of others: %v", list)
	}
	all.want("PUT", "/consumers/bad%20name", `{}`, 400, "consumer")
	all.want("PUT", "/consumers/all", `{"kinds":["joins"]}`, 400, "kinds")
	all.want("PUT", "/consumers/all", `{"from":"x"}`, 400, "oldest")
	all.want("PUT", "/consumers/all", `{"from":"now","since":5}`, 400, "since")
	all.want("GET", "/events?consumer=all&rooms=demo", "", 400, "rooms")
	s.before = func() { // somebody else is faster
		k := s.kept["all"]
		s.last++
		k.Revision = s.last
		s.kept["all"] = k
	}
	all.want("PUT", "/consumers/all", `{"paused":true}`, 200, "paused:true")
	for i := range journal.MaxConsumers - 2 {
		all.want("PUT", fmt.Sprint("/consumers/c", i), `{}`, 201, "")
	}
	all.want("PUT", "/consumers/onemore", `{}`, 409, "all there may be")
	all.want("PUT", "/consumers/all", `{"paused":false}`, 200, "")
}

// A reader of a paused consumer waits for as long as it said, and gets nothing.
func TestPausedConsumersWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _, end := newShelfWorld(t, 1)
		defer end()
		r := reader{w, w.token(protocol.RoleService)}
		r.want("PUT", "/consumers/books", `{"from":"oldest","paused":true}`, 201, "")
		began := time.Now()
		page := r.want("GET", "/events?consumer=books&wait=20", "", 200, "paused:true")
		if took := time.Since(began); ids(page) != "" || took != 20*time.Second {
			t.Errorf("%v after %v", page, took)
		}
		if res, body := w.call("GET", "/events?consumer=books", r.bearer, "", "Accept", "text/event-stream"); res.StatusCode != 409 {
			t.Errorf("a stream of it: %d %v", res.StatusCode, body)
		}
	})
}

// letters is a webhook that was not taken of.
type letters struct {
	dead []webhook.Letter
	why  string
}

func (l *letters) Dead(_ context.Context, after uint64, limit int) ([]webhook.Letter, error) {
	return l.dead[:min(limit, len(l.dead))], nil
}

func (l *letters) SendAgain(_ context.Context, seqs []uint64) (int, string, error) {
	return len(seqs), l.why, nil
}

func (l *letters) Discard(_ context.Context, seq uint64) (bool, error) { return seq == 7, nil }

// Dead letters of a webhook that the node knows are looked at, sent again and given up; the webhook itself is not anybody's to take away.
func TestDeadLetters(t *testing.T) {
	s := &shelf{gifts: 1, kept: map[string]journal.Kept{}}
	w := newWorld(t, func(c *Config) {
		c.Consumers = journal.Consumers{Journal: journal.Journal{Store: s}, Keeper: s}
		c.Webhook = func(name string) Webhook {
			if name == "webhook-books" {
				return &letters{[]webhook.Letter{{Seq: 7, Why: "no such user"}}, "away"}
			}
			return nil
		}
	})
	r := reader{w, w.token(protocol.RoleService)}
	if _, err := w.api.cfg.Consumers.Change(t.Context(), "webhook-books", func(c *journal.Consumer, _ bool) error { c.Owned = true; return nil }); err != nil {
		t.Fatal(err)
	}
	r.want("PUT", "/consumers/other", `{}`, 201, "")
	r.want("GET", "/consumers/webhook-books/dead", "", 200, "no such user")
	r.want("GET", "/consumers/other/dead", "", 404, "no webhook")
	r.want("GET", "/consumers/nobody/dead", "", 404, "")
	r.want("POST", "/consumers/webhook-books/dead", `{"seqs":[7,8]}`, 200, "sent:2 why:away")
	r.want("POST", "/consumers/webhook-books/dead", `{"seqs":[0]}`, 400, "seqs")
	r.want("DELETE", "/consumers/webhook-books/dead/7", "", 200, "")
	r.want("DELETE", "/consumers/webhook-books/dead/8", "", 404, "seq")
	r.want("DELETE", "/consumers/webhook-books/dead/x", "", 400, "seq")
	r.want("DELETE", "/consumers/webhook-books", "", 409, "configuration")
	r.want("PUT", "/consumers/webhook-books", `{"kinds":["gift"]}`, 400, "configuration")
	r.want("PUT", "/consumers/webhook-books", `{"paused":true}`, 200, "paused:true")
	r.want("POST", "/consumers/webhook-books/ack", `{"cursor":"1"}`, 409, "delivered")
	reader{w, w.token(protocol.RoleService, "demo")}.want("POST", "/consumers/webhook-books/dead", `{}`, 403, "")
}
