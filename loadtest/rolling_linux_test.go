package main

import (
	"io"
	"strings"
	"testing"
	"time"

	"liveroom/loadtest/internal/report"
)

// TestRollingRestart is the command in small: three real nodes go and come back under viewers who do as well.
func TestRollingRestart(t *testing.T) {
	t.Parallel()
	r, out := loadtest(t, exitOK, "rolling", "-server", liveserver(t), "-viewers", "60", "-rooms", "3", "-drain", "1s", "-settle", "1s")
	if r.Closes["1001"] < 60 || r.Closes["1006"] > 0 || r.Latencies["away"].Count < 60 {
		t.Errorf("sockets were cut, or not all of them told to go: %v, away %+v\n%s", r.Closes, r.Latencies["away"], out)
	}
}

// TestWhatIsMissedIsFound: a viewer who lacks a gift or a danmaku fails the run, unless he was told of the danmaku.
func TestWhatIsMissedIsFound(t *testing.T) {
	room := func() *busyRoom {
		r := &busyRoom{name: "r", danmaku: map[string]int64{}, gifts: 9, given: 3}
		for mid, ts := range map[string]int64{"a": 1000, "b": 2000, "c": 3000} {
			r.danmaku[mid] = ts
		}
		return r
	}
	sc, _ := scenarioNamed("rolling")
	for name, c := range map[string]struct {
		viewer *returning
		good   bool
		says   string
	}{
		"all of it":     {&returning{gift: 9, seen: map[string]int{"a": 1, "b": 1, "c": 2}}, true, "0 missed without a word, at most 0 of one viewer, 0 missed and told, 1 seen again"},
		"a danmaku":     {&returning{gift: 9, seen: map[string]int{"a": 1, "c": 1}}, false, "1 missed without a word"},
		"told by count": {&returning{gift: 9, missed: 1, seen: map[string]int{"a": 1, "c": 1}}, true, "0 missed without a word, at most 0 of one viewer, 1 missed and told"},
		"told by time":  {&returning{gift: 9, unknown: []span{{1500, 2500}}, seen: map[string]int{"a": 1, "c": 1}}, true, "1 missed and told"},
		"the wrong time": {&returning{gift: 9, unknown: []span{{2500, 3500}}, seen: map[string]int{"a": 1, "c": 1}}, false,
			"1 missed without a word"},
		"came later":   {&returning{gift: 9, came: time.UnixMilli(2000), seen: map[string]int{"c": 1}}, true, "0 missed and told"},
		"the last one": {&returning{gift: 5, seen: map[string]int{"a": 1, "b": 1, "c": 1}}, false, "1 viewers miss the end of them"},
		"a hole":       {&returning{gift: 9, holes: 1, seen: map[string]int{"a": 1, "b": 1, "c": 1}}, false, "1 holes"},
	} {
		t.Run(name, func(t *testing.T) {
			v := c.viewer
			v.room = room()
			o, err := parseOptions(sc, nil, io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			r := &rollingRun{bench: &bench{o: o, result: newResult(o)}, rooms: []*busyRoom{v.room}, viewers: []*returning{v}, end: 10_000}
			if err := r.tell(); err != nil {
				t.Fatal(err)
			}
			said := strings.Join(r.result.Notes, "\n")
			if good := report.Judge(r.result.Objectives, r.result.Values); good != c.good || !strings.Contains(said, c.says) {
				t.Errorf("%t, want %t and %q:\n%s", good, c.good, c.says, said)
			}
		})
	}
}
