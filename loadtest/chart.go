package main

import (
	"fmt"
	"math"
	"strings"
)

// The plot's own width and height in the units of the page's SVG, which adds the margins, and the most points of a line.
const (
	plotWidth, plotHeight = 644.0, 204.0
	maxPoints             = 360 // more are thinned to their peaks
)

// chart is one picture of the report; report.html draws it.
type chart struct {
	Title, Note string
	x, y        scale
	Series      []series
	bands       []Band // shaded in turn and named, where the horizontal axis is time
}

// series is one line of a chart.
type series struct {
	Name   string
	Colour int // 1 to 6, named in the page's style
	Dashed bool
	points []point
}

// point is one value of a series.
type point struct{ x, y float64 }

// Band is a stretch of time with a name.
type Band struct {
	Name string  `json:"name"`
	From float64 `json:"from_seconds"` // since the first attempt
	To   float64 `json:"to_seconds"`
}

// scale maps values to a chart's axis.
type scale struct {
	min, max float64
	log      bool
	time     bool // seconds since the first attempt
	format   func(float64) string
	ticks    []float64 // empty: round numbers
}

// at is a value's place on the axis, 0 to 1.
func (s scale) at(v float64) float64 {
	if s.log {
		return math.Log(max(v, s.min)/s.min) / math.Log(s.max/s.min)
	}
	return (v - s.min) / (s.max - s.min)
}

// fit widens the axis to hold all values, and to begin at zero when it is linear. Above the highest it leaves some room.
func (s *scale) fit(values []float64, room float64) {
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if !s.log || v > 0 {
			lo, hi = min(lo, v), max(hi, v)
		}
	}
	switch {
	case math.IsInf(lo, 0):
		s.min, s.max = 1, 10
	case s.log:
		s.min = math.Pow(10, math.Floor(math.Log10(lo)))
		s.max = max(math.Pow(10, math.Ceil(math.Log10(hi))), 10*s.min)
	default:
		s.min = min(0, lo)
		s.max = max(hi*room, s.min+1e-9)
	}
}

// marks are the values that the axis names.
func (s scale) marks() (out []float64) {
	switch {
	case len(s.ticks) > 0:
		return s.ticks
	case s.log:
		for v := s.min; v <= s.max*1.001; v *= 10 {
			out = append(out, v)
		}
		return out
	}
	// The least of 1, 2, 5, 10 times a power of ten that makes no more than five steps.
	least := (s.max - s.min) / 5
	step := math.Pow(10, math.Floor(math.Log10(least)))
	for _, m := range []float64{2, 2.5, 2} {
		if step < least {
			step *= m
		}
	}
	for v := math.Ceil(s.min/step) * step; v <= s.max*1.0001; v += step {
		out = append(out, v)
	}
	return out
}

// fitted is the chart with axes that hold its points.
func (c chart) fitted() chart {
	var x, y []float64
	for _, s := range c.Series {
		for _, p := range s.points {
			x, y = append(x, p.x), append(y, p.y)
		}
	}
	if c.x.max == c.x.min {
		c.x.fit(x, 1)
	}
	c.y.fit(y, 1.05)
	return c
}

// px is a length in the page's SVG.
type px float64

func (p px) String() string { return fmt.Sprintf("%.1f", float64(p)) }

func (c chart) across(v float64) px { return px(plotWidth * c.x.at(v)) }

func (c chart) down(v float64) px { return px(plotHeight * (1 - min(max(c.y.at(v), 0), 1))) }

// mark is a value with its place, in the middle of a stretch where it has a width.
type mark struct {
	At, Begin, Width px
	Text             string
	Shaded           bool
}

// Columns are the marks of the horizontal axis, and Rows those of the vertical one.
func (c chart) Columns() (out []mark) {
	for _, v := range c.x.marks() {
		out = append(out, mark{At: c.across(v), Text: c.x.format(v)})
	}
	return out
}

func (c chart) Rows() (out []mark) {
	for _, v := range c.y.marks() {
		out = append(out, mark{At: c.down(v), Text: c.y.format(v)})
	}
	return out
}

// Zero is where the line of zero runs, where something is below it.
func (c chart) Zero() []px {
	if c.y.log || c.y.min >= 0 {
		return nil
	}
	return []px{c.down(0)}
}

// Bands are the stretches of time, with names where there is room for them.
func (c chart) Bands() (out []mark) {
	const letter = 5.6 // width of an average one
	for i, d := range c.bands {
		from, to := c.across(max(d.From, c.x.min)), c.across(min(d.To, c.x.max))
		if to <= from {
			continue
		}
		if float64(len(d.Name))*letter > float64(to-from) {
			d.Name = ""
		}
		out = append(out, mark{(from + to) / 2, from, to - from, d.Name, i%2 == 1})
	}
	return out
}

// line is a drawn series.
type line struct {
	series
	Runs []string // of coordinates
	Dots []dot
}

type dot struct {
	X, Y px
	Text string
}

// Lines are the series. A logarithmic axis has no place for zero, so there a line has a gap: nothing was measured.
func (c chart) Lines() (out []line) {
	for _, s := range c.Series {
		l := line{series: s}
		run := &strings.Builder{}
		for _, p := range thin(s.points) {
			if c.y.log && p.y <= 0 {
				l.Runs, run = append(l.Runs, run.String()), &strings.Builder{}
				continue
			}
			d := dot{c.across(p.x), c.down(p.y), fmt.Sprintf("%s: %s at %s", s.Name, c.y.format(p.y), c.x.format(p.x))}
			fmt.Fprintf(run, "%s,%s ", d.X, d.Y)
			l.Dots = append(l.Dots, d)
		}
		l.Runs = append(l.Runs, run.String())
		out = append(out, l)
	}
	return out
}

// thin keeps the highest of neighbouring points, so that no peak is lost.
func thin(points []point) []point {
	n := (len(points) + maxPoints - 1) / maxPoints
	if n <= 1 {
		return points
	}
	var out []point
	for i := 0; i < len(points); i += n {
		best := points[i]
		for _, p := range points[i:min(i+n, len(points))] {
			if p.y > best.y {
				best = p
			}
		}
		out = append(out, best)
	}
	return out
}
