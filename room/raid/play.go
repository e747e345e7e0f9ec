package raid

// Message is one text of a room.
type Message struct {
	At     int64 // Unix ms
	Sketch Sketch
	User   uint64 // a hash
	Young  bool   // a newcomer's
	Staff  bool   // of whom nothing is held
}

// Fate is what becomes of a message in a room that looks for raids.
type Fate int

// Fates.
const (
	Shown Fate = iota
	Held
	TakenBack // shown first
)

// Play tells what becomes of messages, in their order, and with which of them a raid is seen.
func Play(all []Message) (fates []Fate, seen []int) {
	d, until := &Detector{}, int64(0)
	var sample Sketch
	fates = make([]Fate, len(all))
	for i, m := range all {
		if m.At < until && !m.Staff && (m.Young || m.Sketch.Like(sample)) {
			fates[i] = Held
			continue
		}
		if !d.Saw(m.At, m.Sketch, m.User, m.Young) || m.At < until {
			continue
		}
		seen, sample, until = append(seen, i), m.Sketch, m.At+Lasts.Milliseconds()
		for j := i; j >= 0 && Before(m.At, all[j].At); j-- {
			if fates[j] == Shown && all[j].Young && all[j].Sketch.Like(sample) {
				fates[j] = TakenBack
			}
		}
	}
	return fates, seen
}

// Before reports whether a message of an instant is of a raid that was seen at another, if it is like it.
func Before(seen, said int64) bool { return said > seen-Window.Milliseconds() }
