package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

// class is the kind of message an attempt sends.
type class uint8

// The classes, in the order of every table.
const (
	danmaku class = iota
	gift
	like
	classes
)

// String is the class's name in reports, as in the server's metrics.
func (c class) String() string { return [...]string{"danmaku", "gift", "like"}[c] }

// letter begins the client id of an attempt of this class.
func (c class) letter() byte { return "dgl"[c] }

// mix is the share of each class among the attempts, in any unit.
type mix [classes]float64

// parseMix reads danmaku=80,like=18,gift=2; what is not named is 0.
func parseMix(s string) (mix, error) {
	var m mix
	for _, part := range strings.Split(s, ",") {
		name, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		c, known := classNamed(name)
		share, err := strconv.ParseFloat(value, 64)
		if !ok || !known || err != nil || !(share >= 0 && share < 1e9) {
			return mix{}, fmt.Errorf("mix: want danmaku=80,gift=2,like=18, have %q", part)
		}
		m[c] = share
	}
	if m.sum() == 0 {
		return mix{}, errors.New("mix: want at least one share above 0")
	}
	return m, nil
}

func classNamed(name string) (class, bool) {
	for c := range classes {
		if c.String() == name {
			return c, true
		}
	}
	return 0, false
}

func (m mix) sum() float64 { return m[danmaku] + m[gift] + m[like] }

// draw picks the class of each of n attempts, the same for the same seed.
func (m mix) draw(n int, rng *rand.Rand) []class {
	out := make([]class, n)
	for i := range out {
		x := rng.Float64() * m.sum()
		for c := range classes {
			if x < m[c] {
				out[i] = c
				break
			}
			x -= m[c]
		}
	}
	return out
}
