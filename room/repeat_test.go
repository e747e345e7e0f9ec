package room

import (
	"testing"
	"testing/synctest"
	"time"

	"liveroom/protocol"
)

// The same text with an invisible tail is the same text; what was admitted is shown as it came.
func TestAnInvisibleTailIsTheSameText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newMemoryBus(), func(c *Config) { c.Gate = gateOf(t, unlimited) })
		a := w.join("demo", "a", as(protocol.RoleHost))
		for _, tail := range []string{"\U000e0000", "\u034f", "\u200d", "\u200c", "\u200e", "\u061c", "\ufe0f", "\u200d\u200d\u200d", " \u034f"} {
			wantCode(t, a.say("hi"+tail), protocol.OK, "")
			wantCode(t, a.say("hi"), protocol.TooMany, protocol.ReasonRepeatedText)
			wantCode(t, a.say("hi"+tail+tail), protocol.TooMany, protocol.ReasonRepeatedText)
			time.Sleep(6 * time.Second)
		}
		if got := texts(a.seen("danmaku")); len(got) != 9 || got[1] != "hi\u034f" {
			t.Errorf("shown: %q", got)
		}
		for _, same := range [][2]string{{"Hello", "hеllo"}, {"goool", "GOOOOOOL"}, {"ＡＢＣ 1", "abc 1"}} { // the first e is Latin, the second Cyrillic
			time.Sleep(6 * time.Second)
			wantCode(t, a.say(same[0]), protocol.OK, "")
			wantCode(t, a.say(same[1]), protocol.TooMany, protocol.ReasonRepeatedText)
		}
		w.stop()
	})
}
