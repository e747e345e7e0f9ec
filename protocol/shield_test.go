package protocol

import "testing"

// A shield is off, auto or on; a raid is nobody's to set.
func TestShieldsThatAreRefused(t *testing.T) {
	for _, c := range []struct {
		s    Shield
		want string
	}{
		{Shield{Mode: ShieldAuto}, ""}, {Shield{Mode: ShieldOff}, ""}, {Shield{Mode: ShieldOn}, ""},
		{Shield{Mode: ShieldAuto, Held: ActionDrop}, ""},
		{Shield{Mode: ShieldAuto, Held: ActionDelete}, `shield.held: allowed is release or drop; received "delete"`},
		{Shield{}, "shield.mode: allowed is off, auto or on; received nothing"},
		{Shield{Mode: "always"}, "shield.mode: allowed is off, auto or on; received \"always\""},
		{Shield{Mode: ShieldAuto, Raid: &Raid{Sample: "x"}}, "shield.raid: allowed is left out: the server alone finds one; received \"x\""},
	} {
		_, err := Settings{Shield: &c.s}.Clean()
		if (err == nil) != (c.want == "") || err != nil && err.Detail != c.want {
			t.Errorf("%+v: %v, want %q", c.s, err, c.want)
		}
	}
}
