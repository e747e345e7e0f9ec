package model

import (
	"testing"
	"time"
)

// length is how long a scenario of the catalogue lasts.
func length() time.Duration {
	if *large {
		return 60 * time.Second
	}
	return 5 * time.Second
}

// TestEngine plays the catalogue with the engine.
func TestEngine(t *testing.T) {
	for _, s := range Catalogue(length()) {
		t.Run(s.Name, func(t *testing.T) {
			s.Seed, s.Length, s.Warm = *seed, length(), length()/5
			play(t, s)
		})
	}
}
