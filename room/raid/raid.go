// Package raid sees many newcomers saying nearly the same.
//
// The one idea: the sketch of a text is eight minima over its pairs of characters (MinHash: Broder, 1997) in four bands; texts of which
// two fifths of the pairs or more are common are likely to share a band. A raid is a band that newcomers share, hardly anybody else says,
// and while those who say other things, in the last minutes, are no newcomers. So a whole audience that shouts one word is none, nor is a room where all are new.
//
// Concurrency: a [Detector] is safe for concurrent use; its lock is a leaf. It remembers [memory] texts, some 330 KB, once it is asked, and
// starts no goroutine.
package raid

import (
	"time"
	"unicode"

	"liveroom/internal/lock"
)

const (
	bands  = 4
	memory = 4096 // texts
	least  = 8    // newcomers who say nearly the same
	// chance is how far the share of newcomers must be off the others', so that luck finds a raid once in a million times (Hoeffding, 1963: e to -2n·d²).
	chance    = 7
	lookEvery = 50 * time.Millisecond // or each so many newcomers' texts, the more the longer a look takes:
	perLook   = 256                   // of the texts that are remembered
	shortest  = 4                     // characters: what is shorter, many say by themselves
	pardoned  = 10 * time.Minute      // what staff found harmless
)

const (
	// Window is in what time newcomers have to say nearly the same.
	Window = time.Minute
	// Lasts is for how long a raid that was seen is taken to go on.
	Lasts = 5 * time.Minute
	// usual is in what time others tell how many newcomers a room has who talk: in a quiet one those of the last seconds are too few to say.
	usual = 5 * time.Minute
)

// Sketch is a text as it is compared; the zero value is of one too short to be.
type Sketch [bands]uint64

// Of returns the sketch of a folded text.
func Of(folded string) (s Sketch) {
	var minima [2 * bands]uint64
	for i := range minima {
		minima[i] = ^uint64(0)
	}
	before, n := rune(0), 0
	for _, c := range folded {
		if !unicode.IsLetter(c) && !unicode.IsNumber(c) {
			continue
		}
		if n++; n > 1 {
			pair := uint64(before)<<32 | uint64(c)
			for i := range minima {
				minima[i] = min(minima[i], mix(pair+uint64(i)*0x9e3779b97f4a7c15))
			}
		}
		before = c
	}
	if n < shortest {
		return s
	}
	for b := range s {
		s[b] = mix(minima[2*b]^mix(minima[2*b+1])) | 1
	}
	return s
}

// mix is the finalizer of SplitMix64 (Steele et al., 2014).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Like reports whether two texts are nearly the same.
func (s Sketch) Like(o Sketch) bool {
	for b, band := range s {
		if band != 0 && band == o[b] {
			return true
		}
	}
	return false
}

// said is one text of the last seconds.
type said struct {
	at     int64 // Unix ms
	sketch Sketch
	user   uint64
	young  bool
}

// Detector looks at what is said in one room.
type Detector struct {
	mu       lock.Mutex[lock.Leaf]
	ring     []said          // guarded by mu
	next     int             // guarded by mu
	looked   int64           // when it was counted last; guarded by mu
	passed   int             // newcomers' texts since then; guarded by mu
	users    map[uint64]does // of the last count; guarded by mu
	harmless Sketch          // guarded by mu
	until    int64           // of harmless; guarded by mu
}

// Saw takes a text as the room is shown it, and reports whether it is part of a raid. User is a hash; now is Unix ms.
func (d *Detector) Saw(now int64, s Sketch, user uint64, young bool) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	text := said{now, s, user, young}
	if len(d.ring) < memory {
		d.ring = append(d.ring, text)
	} else {
		d.ring[d.next] = text
		d.next = (d.next + 1) % memory
	}
	if !young || s == (Sketch{}) || now < d.until && s.Like(d.harmless) {
		return false
	}
	return d.raidLocked(now, s)
}

func (d *Detector) raidLocked(now int64, s Sketch) bool {
	if d.passed < len(d.ring)/perLook && now-d.looked < lookEvery.Milliseconds() {
		d.passed++
		return false
	}
	alike := 0
	for i := range d.ring { // most texts are like no other, and that is known soon
		if o := &d.ring[i]; o.young && now-o.at < Window.Milliseconds() && o.sketch.Like(s) {
			alike++
		}
	}
	if alike < least {
		return false
	}
	d.looked, d.passed = now, 0
	if d.users == nil {
		d.users = map[uint64]does{}
	}
	clear(d.users)
	for i := range d.ring {
		o := &d.ring[i]
		u := d.users[o.user]
		switch age := now - o.at; {
		case age < Window.Milliseconds() && o.sketch.Like(s):
			u.same, u.youngSame = true, o.young
		case age < usual.Milliseconds():
			u.youngOther = o.young
		default:
			continue
		}
		d.users[o.user] = u
	}
	var n, young, others, youngOthers float64
	for _, u := range d.users {
		if u.same {
			n, young = n+1, young+one(u.youngSame)
		} else {
			others, youngOthers = others+1, youngOthers+one(u.youngOther)
		}
	}
	share, most := young/n, (youngOthers+1)/(others+2)
	return young >= least && share >= .8 && most <= .5 && n*(share-most)*(share-most) >= chance
}

// does is what a user says lately: the same or not, and whether as a newcomer.
type does struct{ same, youngSame, youngOther bool }

func one(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// Pardon has a text be no part of a raid for a while.
func (d *Detector) Pardon(now int64, s Sketch) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.harmless, d.until = s, now+pardoned.Milliseconds()
}
