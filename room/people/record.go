package people

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
)

// pastMost is how many shows that are over a room remembers.
const pastMost = 8

// record is what is stored of a room, in JSON.
type record struct {
	Show *storedShow `json:"show,omitempty"`
	Past []Told      `json:"past,omitempty"` // the newest last
}

// storedShow is a show as it can be merged.
type storedShow struct {
	Begin   int64                `json:"begin"`
	End     int64                `json:"end,omitempty"`
	Seen    int64                `json:"seen,omitempty"`
	People  *set                 `json:"people"`
	Told    int                  `json:"told"`
	Peak    int                  `json:"peak"`
	PeakAt  int64                `json:"peak_at"`
	Minutes Minutes              `json:"minutes"`
	Refused map[string][]Refused `json:"refused,omitempty"`
}

// Told is what is known of a show as people are told. Times are Unix ms.
type Told struct {
	Begin   int64     `json:"begin"`
	End     int64     `json:"end,omitempty"` // 0: it goes on
	People  int       `json:"people"`        // different persons
	Exact   bool      `json:"exact"`         // else off by 0.8 %, one standard error
	Peak    int       `json:"peak"`          // the most persons at a time
	PeakAt  int64     `json:"peak_at"`
	Minutes Minutes   `json:"minutes"`
	Refused []Refused `json:"refused,omitempty"`
}

// told tells of a show; over: it is, although nobody has closed the room.
func (s *show) told(over bool) Told {
	t := Told{Begin: s.begin, End: s.end, Peak: s.peak, PeakAt: s.peakAt, Minutes: s.minutes, Refused: largest(s.refused, refusedMost)}
	t.People, t.Exact = s.people.count()
	if over && t.End == 0 {
		t.End = max(s.seen, s.begin)
	}
	return t
}

// Shows are a room's shows as they are stored, the newest first. now is Unix ms.
func Shows(value []byte, now int64) ([]Told, error) {
	r, s, err := parseRecord(value)
	if err != nil || s.begin == 0 {
		return nil, err
	}
	_, over := s.over(now, Doors{})
	out := []Told{s.told(over)}
	for i := len(r.Past) - 1; i >= 0; i-- {
		out = append(out, r.Past[i])
	}
	return out, nil
}

func parseRecord(value []byte) (r record, s show, err error) {
	if len(value) == 0 {
		return r, s, nil
	}
	if err := json.Unmarshal(value, &r); err != nil {
		return record{}, s, fmt.Errorf("people: record: %w", err)
	}
	x := r.Show
	if x == nil || x.People == nil || x.Begin <= 0 || len(x.Minutes) > minutesMost {
		return record{}, s, errors.New("people: record: no show")
	}
	s = show{begin: x.Begin, end: x.End, seen: x.Seen, people: *x.People, peak: x.Peak, peakAt: x.PeakAt, minutes: x.Minutes, refused: x.Refused}
	s.people.told = x.Told
	return r, s, nil
}

func encodeRecord(s *show, past []Told) []byte {
	told, _ := s.people.count()
	x := storedShow{Begin: s.begin, End: s.end, Seen: s.seen, People: &s.people, Told: told, Peak: s.peak, PeakAt: s.peakAt, Minutes: s.minutes}
	for part, lines := range s.refused {
		if x.Refused == nil {
			x.Refused = map[string][]Refused{}
		}
		x.Refused[part] = largest(map[string][]Refused{part: lines}, refusedMost)
	}
	value, _ := json.Marshal(record{Show: &x, Past: past}) // numbers, texts and what encodes itself
	return value
}

// MarshalText implements [encoding.TextMarshaler].
func (s *set) MarshalText() ([]byte, error) {
	b, err := s.MarshalBinary()
	return encode64(b), err
}

// UnmarshalText implements [encoding.TextUnmarshaler].
func (s *set) UnmarshalText(text []byte) error {
	b, err := decode64(text)
	if err != nil {
		return err
	}
	return s.UnmarshalBinary(b)
}

// Minutes are a show's, from its beginning on.
type Minutes []Minute

// MarshalText implements [encoding.TextMarshaler]: varints, in base64.
func (m Minutes) MarshalText() ([]byte, error) {
	var b []byte
	for _, one := range m {
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(one.People)), uint64(one.Danmaku))
	}
	return encode64(b), nil
}

// UnmarshalText implements [encoding.TextUnmarshaler].
func (m *Minutes) UnmarshalText(text []byte) error {
	b, err := decode64(text)
	if err != nil {
		return err
	}
	*m = nil
	for len(b) > 0 {
		var two [2]uint64
		for i := range two {
			n, size := binary.Uvarint(b)
			if size <= 0 || n > 1<<40 {
				return errors.New("people: no minutes")
			}
			two[i], b = n, b[size:]
		}
		*m = append(*m, Minute{int(two[0]), int(two[1])})
	}
	return nil
}
