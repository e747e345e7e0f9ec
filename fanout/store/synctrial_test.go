package store

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// What can't be judged is not worded as a verdict: only times that vary little and show no room for a sync are one.
func TestJudgeSync(t *testing.T) {
	const us = time.Microsecond
	even := func(d time.Duration) []time.Duration { return slices.Repeat([]time.Duration{d}, trialWrites) }
	spread := func(from, to time.Duration) []time.Duration {
		d := make([]time.Duration, trialWrites)
		for i := range d {
			d[i] = from + (to-from)*time.Duration(i)/(trialWrites-1)
		}
		return d
	}
	late := even(100 * us)
	for i := range trialWrites / 5 {
		late[i] = 20 * time.Millisecond
	}
	for name, tc := range map[string]struct {
		disk, memory []time.Duration
		want         syncVerdict
	}{
		"as quick as memory":                 {even(110 * us), even(100 * us), syncMissing},
		"quicker than memory":                {even(90 * us), even(100 * us), syncMissing},
		"as quick, with a few late":          {late, even(95 * us), syncMissing},
		"a far server that does not sync":    {spread(30_000*us, 30_050*us), spread(30_000*us, 30_050*us), syncMissing},
		"a quick disk that syncs":            {even(160 * us), even(100 * us), syncPossible},
		"a slow disk that syncs":             {spread(3*time.Millisecond, 9*time.Millisecond), spread(80*us, 300*us), syncPossible},
		"a network that varies":              {spread(200*us, 5000*us), spread(200*us, 5000*us), syncUnknown},
		"memory varies":                      {even(100 * us), spread(20*us, 300*us), syncUnknown},
		"disk varies beyond what memory has": {spread(50*us, 900*us), even(500 * us), syncUnknown},
		"too few":                            {even(100 * us)[1:], even(100 * us), syncUnknown},
		"none":                               {nil, nil, syncUnknown},
	} {
		if extra, v := judgeSync(tc.disk, tc.memory); v != tc.want {
			t.Errorf("%s: %d, want %d (%v longer)", name, v, tc.want, extra)
		}
	}
}

// The trial writes to both kinds of stream and leaves none behind, also where an earlier one died over it.
func TestTimeWrites(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f, _, _ := open(t, alone(t, dir), dir, "n1")
	const name = "apart" // from the trial at the start

	for range 2 {
		disk, memory, err := trial{f.core, 1}.timeWrites(testContext(t), name)
		if err != nil || len(disk) != trialWrites || len(memory) != trialWrites {
			t.Fatal(len(disk), len(memory), err)
		}
		for _, kind := range []string{"disk", "memory"} {
			if _, err := f.link.JS.Stream(testContext(t), trialName(kind, name)); !errors.Is(err, jetstream.ErrStreamNotFound) {
				t.Errorf("the %s stream is left: %v", kind, err)
			}
		}
		_, err = f.link.JS.CreateStream(testContext(t), jetstream.StreamConfig{
			Name: trialName("disk", name), Subjects: []string{"lr.trial.disk." + name}, Storage: jetstream.FileStorage,
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
