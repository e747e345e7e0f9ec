package limit

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestExplain(t *testing.T) {
	g := NewGate(mustCompile(t, rankRules+`
  - {name: user, action: danmaku, scope: user, rate: 1, burst: 3, multiply: {vip: 2}}
  - {name: tried, action: danmaku, scope: user, rate: 1, burst: 1, shadow: true}
`), atZero)
	room, user := &Subject{Scope: ScopeRoom}, &Subject{Scope: ScopeUser}
	q := &Request{Room: "gala-1", Role: "vip"}
	for range 4 {
		g.Decide(0, q, user, room)
	}
	want := []Standing{
		{Rule: "tried", Scope: "user", Algorithm: tokenBucketName, Why: "shadow", Burst: 1, RetryAfter: time.Second},
		{Rule: "user", Scope: "user", Algorithm: tokenBucketName, Why: "applies", Level: 2, Burst: 6},
		{Rule: "gala-7", Scope: "room", Algorithm: tokenBucketName, Why: "other_room"},
		{Rule: "gala-vip", Scope: "room", Algorithm: tokenBucketName, Why: "applies", Burst: 4, RetryAfter: time.Second},
		{Rule: "galas", Scope: "room", Algorithm: tokenBucketName, Why: "superseded"},
		{Rule: "any", Scope: "room", Algorithm: tokenBucketName, Why: "superseded"},
		{Rule: "any-long", Scope: "room", Algorithm: tokenBucketName, Why: "superseded"},
	}
	for range 2 { // twice: it spends nothing
		if diff := cmp.Diff(want, g.Explain(0, q, room, user)); diff != "" {
			t.Fatal(diff)
		}
	}
	user.Reset()
	if have := g.Explain(0, q, user)[1]; have.Level != 6 {
		t.Fatalf("after a reset: %+v", have)
	}
	if have := g.Explain(0, &Request{Room: "gala-1"}, room)[1]; have.Why != "other_role" {
		t.Fatalf("%+v", have)
	}
}
