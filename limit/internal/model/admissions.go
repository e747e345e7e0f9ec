package model

import (
	"cmp"
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

// Window is a span of time and the tokens admitted in it beyond what flowed in.
type Window struct {
	From, To time.Duration
	Tokens   int64 // rounded up
}

// Worst returns the window of admissions, both ends included, that takes most
// beyond what flows in during it: the bound holds when its Tokens are at most
// Burst. It sorts admissions by instant and is exact.
//
// It is the largest sum of a run of numbers (Kadane): entering the k-th
// admission adds its cost, and the time since the one before takes the inflow
// away; a run that has fallen below nothing is better begun anew.
func (b Bound) Worst(admissions []Admission) Window {
	slices.SortStableFunc(admissions, func(x, y Admission) int { return cmp.Compare(x.At, y.At) })
	per := int64(b.Per)
	var run, peak int64 // in units of a token divided by per
	var from time.Duration
	var worst Window
	for i, a := range admissions {
		if i > 0 {
			run = max(run-b.inflow(a.At-admissions[i-1].At, run), 0)
		}
		if run == 0 {
			from = a.At
		}
		if run += a.Cost * per; run > peak {
			peak = run
			worst.From, worst.To = from, a.At
		}
	}
	worst.Tokens = (peak + per - 1) / per
	return worst
}

// inflow is what flows in during d, at most most, in units.
func (b Bound) inflow(d time.Duration, most int64) int64 {
	hi, lo := bits.Mul64(uint64(b.Rate), uint64(d))
	if hi != 0 || lo > uint64(most) {
		return most
	}
	return int64(lo)
}
