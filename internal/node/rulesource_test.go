package node

import (
	"fmt"
	"strings"
	"testing"

	"liveroom/limit"
)

// A rule that this server would never ask, or whose pace it could not keep, is refused when it is loaded.
func TestAskable(t *testing.T) {
	for rule, want := range map[string]string{
		"action: frame, scope: room, rate: 1, burst: 1":                                          `[{rules[0].scope "room" is never asked about frame; want conn}]`,
		"action: [danmaku, join], scope: net_room, rate: 1, burst: 1":                            `[{rules[0].scope "net_room" is never asked about join, only about ` + strings.Join(shared(), ", ") + "}]",
		"action: [danmaku, gift, like], scope: room, algorithm: leaky_bucket, rate: 5, burst: 6": "[]",
		"action: danmaku, scope: user, algorithm: leaky_bucket, rate: 5, burst: 7":               "[{rules[0].burst would hold a message back for up to 1.2s; want at most 1s: a smaller burst or a higher rate}]",
		"action: 'api:GET /rooms', scope: key, algorithm: leaky_bucket, rate: 1, burst: 2":       "[]",
		"action: [danmaku, join], scope: user, algorithm: leaky_bucket, rate: 5, burst: 2":       "[{rules[0].algorithm join is answered at once, a leaky_bucket would pace nothing; take token_bucket}]",
		"action: frame, scope: conn, algorithm: leaky_bucket, rate: 20, burst: 2":                "[{rules[0].algorithm frame is answered at once, a leaky_bucket would pace nothing; take token_bucket}]",
		`action: [frame, danmaku], scope: conn, rate: 1, burst: 1, where: {level: ">=2"}`:        "[{rules[0].where who connects, and for a frame the room, is not known then; a rule about it would never be asked}]",
		`action: [event, danmaku], scope: user, rate: 1, burst: 1, where: {level: ">=2"}`:        "[]",
		"action: danmaku, scope: user, rate: 1, burst: 1000":                                     "[]",
	} {
		spec, err := limit.Parse([]byte("rules: [{name: r, " + rule + "}]"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := spec.Compile(); err != nil {
			t.Fatal(err)
		}
		faults := checkAskable(spec.Rules)
		if have := fmt.Sprint([]limit.Fault(faults)); have != want {
			t.Errorf("%s: %s", rule, have)
		}
	}
}
