package main

import (
	"strings"
	"testing"
	"time"
)

// TestRollingRestart is the command in small: three real nodes go and come back under viewers who do as well.
func TestRollingRestart(t *testing.T) {
	t.Parallel()
	out, errs := newOutput(), newOutput()
	args := []string{"-server", liveserver(t), "-viewers", "60", "-rooms", "3", "-drain", "1s", "-settle", "1s"}
	if code := rolling(t.Context(), args, out, errs); code != exitOK || !strings.Contains(out.String(), "Nobody misses a gift") {
		t.Errorf("exit %d\n%s\n%s", code, out, errs)
	}
	if strings.Contains(out.String(), " 1006 ") {
		t.Errorf("sockets were cut:\n%s", out)
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
	for name, c := range map[string]struct {
		viewer *returning
		good   bool
		says   string
	}{
		"all of it":     {&returning{gift: 9, seen: map[string]int{"a": 1, "b": 1, "c": 2}}, true, "0 missed without a word (0.0000 %, at most 0 of one viewer), 0 missed and told, 1 seen again"},
		"a danmaku":     {&returning{gift: 9, seen: map[string]int{"a": 1, "c": 1}}, false, "1 missed without a word"},
		"told by count": {&returning{gift: 9, missed: 1, seen: map[string]int{"a": 1, "c": 1}}, true, "0 missed without a word (0.0000 %, at most 0 of one viewer), 1 missed and told"},
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
			r := &rollingRun{o: &rollingOptions{}, rooms: []*busyRoom{v.room}, viewers: []*returning{v}, end: 10_000}
			out := newOutput()
			if good := r.tell(out); good != c.good || !strings.Contains(out.String(), c.says) {
				t.Errorf("%t, want %t and %q:\n%s", good, c.good, c.says, out)
			}
		})
	}
}
