package limit

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// The faults of the article that the design started from, as far as they are
// this package's to make. Others stand with the middleware and the counters.

// sources returns the package's own files by name, without comments.
func sources(t *testing.T) map[string]string {
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	more, err := filepath.Glob("cluster/*.go")
	if err != nil || len(more) == 0 {
		t.Fatal(more, err)
	}
	names = append(names, more...)
	comment := regexp.MustCompile(`(?m)//.*$`)
	texts := map[string]string{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		texts[name] = comment.ReplaceAllString(string(text), "")
	}
	return texts
}

func TestFaultWallClock(t *testing.T) {
	for name, text := range sources(t) {
		if name != "instant.go" && name != "cluster/stats.go" && strings.Contains(text, "time.Now") {
			t.Errorf("%s reads a clock; time is an argument", name)
		}
	}
	clock := NewClock()
	for last, i := clock(), 0; i < 1000; i++ {
		now := clock()
		if now < last {
			t.Fatal("the clock ran backwards")
		}
		last = now
	}
}

func TestFaultFloatLevels(t *testing.T) {
	for name, text := range sources(t) {
		if strings.Contains(text, "float") {
			t.Errorf("%s counts in floating point", name)
		}
	}
}

// Reads beside grants, under the race detector.
func TestFaultRefillInAnUnlockedRead(t *testing.T) {
	g := NewGate(defaultRulesSet(t), atZero)
	user := &Subject{Scope: ScopeUser}
	bucket := mustNumbers(t, Limit{Rate: 1, Burst: 100}).bucket(0)
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for i := range 200 {
				bucket.Take(Instant(i), 1)
				g.Decide(Instant(i), &Request{Action: Gift}, user)
			}
		})
		wg.Go(func() {
			for i := range 200 {
				bucket.Level(Instant(i))
				user.Full(Instant(i))
				g.Explain(Instant(i), &Request{Action: Gift}, user)
			}
		})
	}
	wg.Wait()
	if level := bucket.Level(400); level != 0 {
		t.Errorf("%d left of 100 after 400 tries", level)
	}
}

func TestFaultRefusedByOneScopeChargedToAnother(t *testing.T) {
	g := NewGate(defaultRulesSet(t), atZero)
	conn, user := &Subject{Scope: ScopeConn}, &Subject{Scope: ScopeUser}
	seat, room := &Subject{Scope: ScopeUserRoom}, &Subject{Scope: ScopeRoom}
	q := &Request{Action: Danmaku, Role: "viewer"}
	for range 50 {
		g.Decide(0, q, conn, user, seat, room) // the seat refuses from the fourth on
	}
	for _, c := range []struct {
		s    *Subject
		left int64
	}{{conn, 5 - 3}, {user, 20 - 3}, {room, 200 - 3}} {
		if have := g.Explain(0, q, c.s)[0].Level; have != c.left {
			t.Errorf("%s has %d left, want %d", c.s.Scope, have, c.left)
		}
	}
}

// A room named in the query selects no rule: only the route's template does.
func TestFaultRoomTakenFromAParameter(t *testing.T) {
	gate := NewGate(mustCompile(t, `
rules:
  - {name: generous, action: api, scope: ip, room: vip, rate: 100, burst: 100}
  - {name: usual, action: api, scope: ip, rate: 1, burst: 1}
`), atZero)
	h := Middleware{Gate: gate}.Wrap(http.HandlerFunc(ok))
	serve(h, call{path: "/?room=vip"})
	if w := serve(h, call{path: "/?room=vip"}); w.Code != 429 || !strings.Contains(w.Body.String(), `"usual"`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// A key without expiry blocks for ever: here nothing spent stays spent, except
// under rate 0, where the rules say so.
func TestFaultBlockedForEver(t *testing.T) {
	g := NewGate(defaultRulesSet(t), atZero)
	for scope := range scopeCount {
		s := &Subject{Scope: scope}
		for action := range actionCount {
			for range 100 {
				g.Decide(0, &Request{Action: action, Cost: 20}, s)
			}
		}
		if !s.Full(Instant(time.Minute)) {
			t.Errorf("scope %s is not full again after a minute", scope)
		}
	}
}
