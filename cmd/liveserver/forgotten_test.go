package main

import "testing"

// TestWhatARestartForgets holds the limits page to what it says of a node alone: full buckets, no answers but those of gifts.
func TestWhatARestartForgets(t *testing.T) {
	t.Parallel()
	const rules = `
rules:
  - {name: said, action: [danmaku, gift], scope: user, rate: 0, burst: 2}
  - {name: welcome, action: [join, connect], scope: ip, rate: 100, burst: 100}
`
	dir := t.TempDir()
	ann := func(s *server) *client { return join(t, s.url, "demo", tokenFor(t, dir, "-sub", "ann")) }
	s := startWithRules(t, dir, rules)
	before := ann(s)
	gift := before.ask("gift", `,"gift":"rose","count":1`)
	said := before.ask("danmaku", `,"text":"the same"`)
	if ack := before.ask("danmaku", `,"text":"one more"`); gift.num("code") != 200 || said.num("code") != 200 || ack.num("code") != 429 {
		t.Fatalf("before: %v, %v, %v", gift, said, ack)
	}
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	s = startWithRules(t, dir, rules)
	after := ann(s)
	for _, text := range []string{"the same", "another"} {
		if ack := after.ask("danmaku", `,"text":"`+text+`"`); ack.num("code") != 200 {
			t.Errorf("after the restart: %v", ack)
		}
	}
	if ack := after.ask("danmaku", `,"text":"too much"`); ack.num("code") != 429 {
		t.Errorf("after the restart: %v", ack)
	}
}
