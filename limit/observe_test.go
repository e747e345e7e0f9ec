package limit

import "testing"

type lookOn struct {
	n    int
	last Observed
}

func (l *lookOn) Observe(o Observed) { l.n, l.last = l.n+1, o }

func TestObserverSeesEveryDecision(t *testing.T) {
	g := NewGate(defaultRulesSet(t), atZero)
	conn, user := &Subject{Scope: ScopeConn}, &Subject{Scope: ScopeUser}
	var l lookOn
	q := &Request{Action: Like, Cost: 3, Role: "viewer", User: "u1", Room: "demo", Audience: 7}
	decide := func() { g.Decide(5, q, conn, user) }
	decide()
	g.Observe(&l)
	decide()
	if l.n != 1 || l.last.Now != 5 || l.last.Request != *q || l.last.Decision.Verdict != Allow || l.last.Conn == 0 || l.last.Scopes != 1<<ScopeConn|1<<ScopeUser {
		t.Fatalf("seen %d, last %+v", l.n, l.last)
	}
	if n := testing.AllocsPerRun(100, decide); n != 0 {
		t.Errorf("%v allocations with an observer", n)
	}
	if l.last.Decision.Verdict != Reject {
		t.Errorf("the last of many: %+v", l.last.Decision)
	}
	g.Observe(nil)
	seen := l.n
	decide()
	if l.n != seen {
		t.Error("seen after the end")
	}
}
