package api

import (
	"encoding/csv"
	"fmt"
	"net/http/httptest"
	"slices"
	"testing"

	"liveroom/room"
	"liveroom/room/people"
)

// The table can be read back, whatever people call themselves, and no cell is a formula.
func TestSummaryAsCSV(t *testing.T) {
	s := summary{Room: "demo", Title: `=1+1, "quoted"`, Acts: []decided{{AuditEntry: room.AuditEntry{By: "host", Action: "mute", User: "@bad", Seconds: 60}}}}
	s.take(people.Told{Begin: 1000, End: 121_000, People: 2, Minutes: people.Minutes{{People: 1, Danmaku: 3}, {People: 2, Danmaku: 4}}, Refused: []people.Refused{{User: "-u", Rule: "r", Count: 9}}}, 0)
	s.Gifts = summedGifts{Count: 1, Value: 10, ByGiver: []given{{"u\n1", "+name", 1, 10}}}
	w := httptest.NewRecorder()
	if err := s.writeCSV(w); err != nil {
		t.Fatal(err)
	}
	lines, err := csv.NewReader(w.Body).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`[begin_ms demo '=1+1, "quoted" 1000 0]`, "[duration_ms   120000 0]", "[danmaku   7 0]", "[danmaku_in_minute 1  4 0]", "[people_in_minute 0  1 0]",
		"[giver u\n1 '+name 1 10]", "[refused r '-u  9 0]", "[act mute '@bad by host 1 60]",
	} {
		if !slices.ContainsFunc(lines, func(l []string) bool { return fmt.Sprint(l) == want }) {
			t.Errorf("no line %s in %v", want, lines)
		}
	}
}

// Those of most value stand first, and no more than asked.
func TestRanked(t *testing.T) {
	all := map[string]*given{}
	for _, g := range []given{{"a", "A", 1, 5}, {"b", "B", 2, 5}, {"a", "A2", 1, 1}, {"c", "C", 1, 1}} {
		add(all, g)
	}
	if got := fmt.Sprint(ranked(all, 2)); got != "[{a A2 2 6} {b B 2 5}]" {
		t.Error(got)
	}
}
