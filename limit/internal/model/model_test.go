package model

import (
	"flag"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

var (
	large = flag.Bool("large", false, "play the large form, some minutes")
	seed  = flag.Uint64("seed", 1, "the first seed of everything that is drawn")
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// play runs a scenario in a bubble and tells what it missed.
func play(t *testing.T, s Scenario) *Result {
	t.Helper()
	var r *Result
	synctest.Test(t, func(t *testing.T) { r = Run(s) })
	for _, fault := range r.Faults() {
		t.Errorf("%s, %s, seed %d: %s", s.Name, s.Way, s.Seed, fault)
	}
	return r
}

// named returns a scenario of the catalogue.
func named(t *testing.T, name string, length time.Duration) Scenario {
	t.Helper()
	for _, s := range Catalogue(length) {
		if s.Name == name {
			s.Seed, s.Length, s.Warm = *seed, length, length/5
			return s
		}
	}
	t.Fatalf("no scenario %q", name)
	return Scenario{}
}

// TestOtherWays holds the ways that are not ours to what is said of them.
func TestOtherWays(t *testing.T) {
	for _, c := range []struct {
		name string
		way  Way
		want Want
	}{
		{"3 nodes, pulse 50x", PerMessage, Want{Utilisation: 0.99}},
		{"3 nodes, pulse 50x", ReportTenth, Want{Exceeds: true}},
		{"20 nodes, pulse 50x", ReportSecond, Want{Exceeds: true}},
		{"3 nodes, pulse 50x", FixedShare, Want{Utilisation: 0.9}},
	} {
		s := named(t, c.name, 5*time.Second)
		s.Way, s.Want, s.Warm = c.way, c.want, 0
		play(t, s)
	}
	s := named(t, "3 nodes, one has all", 5*time.Second)
	s.Way, s.Want = FixedShare, Want{}
	if r := play(t, s); r.Utilisation > 0.4 {
		t.Errorf("a third of the rate for a node with all of the demand: %.3f used", r.Utilisation)
	}
}
