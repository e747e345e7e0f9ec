package preview_test

import (
	"fmt"
	"time"

	"liveroom/internal/preview"
	"liveroom/limit"
)

func compile(change func(*limit.Rule)) *limit.Rules {
	spec := limit.Default()
	for i := range spec.Rules {
		change(&spec.Rules[i])
	}
	rules, err := spec.Compile()
	if err != nil {
		panic(err)
	}
	return rules
}

// A node records what its gate decides; before somebody publishes a set, it is asked what would have happened.
func Example() {
	today := compile(func(*limit.Rule) {})
	now := limit.Instant(0)
	gate := limit.NewGate(today, func() limit.Instant { return now })
	recorder := preview.NewRecorder("n1", gate.Now)
	gate.Observe(recorder)

	// Fifty users, each says something every four seconds.
	users := make([]limit.Subject, 50)
	room := limit.Subject{Scope: limit.ScopeRoom}
	for i := range users {
		users[i].Scope = limit.ScopeUser
	}
	for i := range 50 * 15 {
		now = now.Add(4 * time.Second / 50)
		q := &limit.Request{Action: limit.Danmaku, Cost: 1, Role: "viewer", User: fmt.Sprint("u", i%50), Room: "demo", Audience: 50}
		gate.Decide(now, q, &users[i%50], &room)
	}

	proposed := compile(func(r *limit.Rule) {
		if r.Name == "danmaku-user" {
			r.Rate, r.Burst = 2, 2 // meant was 20
		}
	})
	report := preview.Replay(recorder.Between(recorder.Now().Add(-preview.Window), recorder.Now().Add(time.Second)), today, proposed)
	fmt.Printf("%d messages of %d users in %.0f s\n", report.Messages, report.Users, report.Seconds)
	fmt.Printf("refused today %.0f %%, proposed %.0f %%\n", 100*report.Today.Refused.Messages.Share, 100*report.Proposed.Refused.Messages.Share)
	judgement := report.Judge()
	fmt.Println("needs an override:", judgement.Override)
	for _, reason := range judgement.Reasons[:2] {
		fmt.Println(reason.Text)
	}
	// Output:
	// 750 messages of 50 users in 60 s
	// refused today 0 %, proposed 67 %
	// needs an override: true
	// it refuses 66.67 % of all messages, today's 0.00 %
	// it refuses 100.00 % of the users of all messages at least one, today's 0.00 %
}
