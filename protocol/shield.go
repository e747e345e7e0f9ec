package protocol

import "fmt"

// Modes of a shield.
const (
	ShieldOff  = "off"
	ShieldAuto = "auto" // a raid is found, and what newcomers say is held while it lasts
	ShieldOn   = "on"   // what newcomers say is held
)

// Shield holds what newcomers say for staff, while there is a raid or always.
type Shield struct {
	Mode string `json:"mode"`
	// Raid is the one under way. Who sets a shield ends it.
	Raid *Raid `json:"raid,omitempty"`
	// Held says, with a change, what becomes of what the shield holds: release or drop. "": it waits for staff.
	Held Action `json:"held,omitempty"`
}

// Raid is many newcomers saying nearly the same. Times are Unix ms.
type Raid struct {
	At     int64  `json:"at"`
	Until  int64  `json:"until"`  // it is over by itself
	Sample string `json:"sample"` // what one of them said
}

// String tells it, for people.
func (s Shield) String() string {
	if s.Raid != nil {
		return fmt.Sprintf("%s, raid: %q", s.Mode, s.Raid.Sample)
	}
	if s.Held != "" {
		return fmt.Sprintf("%s, what it held: %s", s.Mode, s.Held)
	}
	return s.Mode
}

func (s Shield) check() *Error {
	if s.Mode != ShieldOff && s.Mode != ShieldAuto && s.Mode != ShieldOn {
		return BadField("shield.mode", "off, auto or on", s.Mode)
	}
	if s.Held != "" && s.Held != ActionRelease && s.Held != ActionDrop {
		return BadField("shield.held", "release or drop", string(s.Held))
	}
	if s.Raid != nil {
		return BadField("shield.raid", "left out: the server alone finds one", s.Raid.Sample)
	}
	return nil
}
