package model

import (
	"math/bits"
	"slices"
	"time"
)

// Admission is one message that went ahead.
type Admission struct {
	At   time.Duration // since the run began, by the true clock
	Cost int64         // tokens, >= 0
	Node int
}

// Bound is what a rule promises: any window of length w admits at most Burst
// tokens and Rate more for each Per of w.
type Bound struct {
	Burst int64
	Rate  int64
	Per   time.Duration
}

// Peak returns the most that any window of admissions takes beyond what flows
// in during it, in tokens rounded up: the bound holds when Peak is at most
// Burst. It sorts admissions by instant and is exact.
//
// It is the largest sum of a run of numbers (Kadane): entering the k-th
// admission adds its cost, and the time since the one before takes the inflow
// away; a run that has fallen below nothing is better begun anew.
func (b Bound) Peak(admissions []Admission) int64 {
	slices.SortStableFunc(admissions, func(x, y Admission) int { return int(min(max(x.At-y.At, -1), 1)) })
	per := int64(b.Per)
	var run, peak int64 // in units of a token divided by per
	for i, a := range admissions {
		if i > 0 {
			run = max(run-b.inflow(a.At-admissions[i-1].At, run), 0)
		}
		run += a.Cost * per
		peak = max(peak, run)
	}
	return (peak + per - 1) / per
}

// inflow is what flows in during d, at most most, in units.
func (b Bound) inflow(d time.Duration, most int64) int64 {
	hi, lo := bits.Mul64(uint64(b.Rate), uint64(d))
	if hi != 0 || lo > uint64(most) {
		return most
	}
	return int64(lo)
}

// Excess returns how many tokens the worst window holds above the bound, 0
// when it is kept.
func (b Bound) Excess(admissions []Admission) int64 {
	return max(b.Peak(admissions)-b.Burst, 0)
}
