package people

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

const (
	// showMost is how long a show lasts at most, showGap how long nobody may be there.
	showMost = 24 * time.Hour
	showGap  = time.Hour
	// minutesMost is how many minutes are kept of one, one more than showMost has.
	minutesMost = int(showMost/time.Minute) + 1
	// refusedKept bounds the lines of refusals that a node has of a show, refusedMost those that are stored of them, partsMost the starts
	// of nodes of which there are any.
	refusedKept = 200
	refusedMost = 50
	partsMost   = 32
)

// Minute is what one minute of a show saw.
type Minute struct {
	People  int // the most at a time
	Danmaku int // that were shown
}

// Refused is how often one person was refused by one rule. User is "" of all those together who have no line of their own.
type Refused struct {
	User   string `json:"user"`
	Name   string `json:"name,omitempty"`
	Action string `json:"action"`
	Reason string `json:"reason"`
	Rule   string `json:"rule,omitempty"`
	Count  int    `json:"count"`
}

func (r Refused) like(o Refused) bool {
	return r.User == o.User && r.Action == o.Action && r.Reason == o.Reason && r.Rule == o.Rule
}

// show is one show of a room as one node, or the store, knows it. Times are Unix ms.
type show struct {
	begin, end, seen int64 // begin 0: not known yet; end 0: it goes on; seen: somebody was there
	people           set
	peak             int
	peakAt           int64
	minutes          []Minute             // the first is that which begins with begin
	refused          map[string][]Refused // by who has counted
}

// Doors is what a room's settings say of its shows, in Unix ms; 0: never.
type Doors struct {
	Opened, Closed int64 // the last time
	Shut           bool  // it is closed now
}

// over reports whether another show begins with whoever is there at an instant, and when.
func (s *show) over(now int64, d Doors) (next int64, over bool) {
	switch {
	case d.Shut:
		return 0, false
	case d.Opened > s.begin:
		return d.Opened, true
	case s.end != 0: // and was not opened since
		return 0, false
	case now-s.begin >= showMost.Milliseconds(), now-s.seen >= showGap.Milliseconds():
		return now, true
	}
	return 0, false
}

// minute returns the minute of an instant, nil of one before or long after the show.
func (s *show) minute(now int64) *Minute {
	i := int((now - s.begin) / time.Minute.Milliseconds())
	if now < s.begin || i >= minutesMost {
		return nil
	}
	for len(s.minutes) <= i {
		s.minutes = append(s.minutes, Minute{})
	}
	return &s.minutes[i]
}

// crowd notes how many are there.
func (s *show) crowd(now int64, n int) {
	if n == 0 {
		return
	}
	s.seen = max(s.seen, now)
	if n > s.peak {
		s.peak, s.peakAt = n, now
	}
	if m := s.minute(now); m != nil {
		m.People = max(m.People, n)
	}
}

// merge takes what another knows of the same show.
func (s *show) merge(o *show) {
	s.people.merge(&o.people)
	s.seen = max(s.seen, o.seen)
	if s.end == 0 || o.end != 0 && o.end < s.end {
		s.end = o.end
	}
	if o.peak > s.peak || o.peak == s.peak && o.peakAt < s.peakAt {
		s.peak, s.peakAt = o.peak, o.peakAt
	}
	for i, m := range o.minutes {
		if i == len(s.minutes) {
			s.minutes = append(s.minutes, Minute{})
		}
		s.minutes[i] = Minute{max(s.minutes[i].People, m.People), max(s.minutes[i].Danmaku, m.Danmaku)}
	}
	for part, lines := range o.refused {
		if counted(lines) > counted(s.refused[part]) {
			s.put(part, slices.Clone(lines))
		}
	}
}

func (s *show) put(part string, lines []Refused) {
	if s.refused == nil {
		s.refused = map[string][]Refused{}
	}
	s.refused[part] = lines
	if len(s.refused) > partsMost { // the least of them goes, the same one on every node
		least := slices.MinFunc(slices.Sorted(maps.Keys(s.refused)), func(a, b string) int {
			return cmp.Compare(counted(s.refused[a]), counted(s.refused[b]))
		})
		delete(s.refused, least)
	}
}

func counted(lines []Refused) (n int) {
	for _, l := range lines {
		n += l.Count
	}
	return n
}

// refuse counts a refusal on the lines of a part.
func (s *show) refuse(part string, r Refused) {
	s.put(part, addRefused(s.refused[part], r, refusedKept))
}

// addRefused adds to a list whose lines stand in the order of their last growth. Of a full one the oldest of the smallest lines of persons
// joins those without a name.
func addRefused(lines []Refused, r Refused, most int) []Refused {
	if i := slices.IndexFunc(lines, r.like); i >= 0 {
		r.Count += lines[i].Count
		lines = slices.Delete(lines, i, i+1)
	}
	lines = append(lines, r)
	for len(lines) > most {
		least := -1
		for i, l := range lines[:len(lines)-1] {
			if l.User != "" && (least < 0 || l.Count < lines[least].Count) {
				least = i
			}
		}
		if least < 0 { // more rules than lines: nobody has so many
			return lines[len(lines)-most:]
		}
		gone := lines[least]
		gone.User, gone.Name = "", ""
		lines = slices.Delete(lines, least, least+1)
		if i := slices.IndexFunc(lines, gone.like); i >= 0 {
			lines[i].Count += gone.Count
		} else {
			lines = append([]Refused{gone}, lines...)
		}
	}
	return lines
}

// Without is what is told of shows without the lines of persons who are erased, who were there since an instant in Unix ms: these count among
// those without a name.
func Without(shows []Told, erased func(user string, since int64) bool) []Told {
	out := slices.Clone(shows)
	for i, t := range out {
		if !slices.ContainsFunc(t.Refused, func(r Refused) bool { return erased(r.User, t.Begin) }) {
			continue
		}
		var left []Refused
		for _, r := range t.Refused {
			if erased(r.User, t.Begin) {
				r.User, r.Name = "", ""
			}
			left = addRefused(left, r, refusedMost)
		}
		out[i].Refused = largest(map[string][]Refused{"": left}, refusedMost)
	}
	return out
}

// largest are the lines of all parts together, the largest first, the rest without a name.
func largest(parts map[string][]Refused, most int) []Refused {
	var all []Refused
	for _, part := range slices.Sorted(maps.Keys(parts)) {
		all = append(all, parts[part]...)
	}
	order := func(a, b Refused) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.User, b.User), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Action, b.Action))
	}
	slices.SortFunc(all, order)
	var out []Refused
	for _, r := range slices.Backward(all) { // so that the smallest are the oldest
		out = addRefused(out, r, most)
	}
	slices.SortFunc(out, order)
	return out
}
