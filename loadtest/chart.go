package main

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"strings"
)

// Geometry of a chart in SVG units; the page scales it.
const (
	chartWidth, chartHeight         = 720, 260
	plotLeft, plotRight             = 64, 12
	plotTop, plotBottom             = 22, 34
	maxPoints                       = 360 // of one series; more are thinned to their peaks
	plotWidth, plotHeight   float64 = chartWidth - plotLeft - plotRight, chartHeight - plotTop - plotBottom
)

// point is one value of a series.
type point struct{ x, y float64 }

// series is one line of a chart.
type series struct {
	name   string
	colour int // 1 to 6, named in the page's style
	dashed bool
	points []point
}

// scale maps values to a chart's axis.
type scale struct {
	min, max float64
	log      bool
	time     bool // seconds since the first attempt
	format   func(float64) string
	ticks    []float64 // empty: round numbers
}

// chart is one picture of the report.
type chart struct {
	title, note string
	x, y        scale
	series      []series
	bands       []Band // shaded in turn and named, where the horizontal axis is time
}

// Band is a stretch of time with a name.
type Band struct {
	Name string  `json:"name"`
	From float64 `json:"from_seconds"` // since the first attempt
	To   float64 `json:"to_seconds"`
}

// at is a value's place on the axis, 0 to 1.
func (s scale) at(v float64) float64 {
	if s.log {
		return (math.Log(max(v, s.min)) - math.Log(s.min)) / (math.Log(s.max) - math.Log(s.min))
	}
	return (v - s.min) / (s.max - s.min)
}

// fit widens the axis to hold all values, and to begin at zero when it is linear.
func (s *scale) fit(values func(yield func(float64))) {
	lo, hi := math.Inf(1), math.Inf(-1)
	values(func(v float64) {
		if !s.log || v > 0 {
			lo, hi = min(lo, v), max(hi, v)
		}
	})
	switch {
	case math.IsInf(lo, 0):
		lo, hi = 1, 10
	case s.log:
		lo, hi = math.Pow(10, math.Floor(math.Log10(lo))), math.Pow(10, math.Ceil(math.Log10(hi)))
		if lo == hi {
			hi *= 10
		}
	default:
		lo, hi = min(0, lo), hi*1.05
		if hi <= lo {
			hi = lo + 1
		}
	}
	s.min, s.max = lo, hi
}

// marks are the values that the axis names.
func (s scale) marks() []float64 {
	if len(s.ticks) > 0 {
		return s.ticks
	}
	var out []float64
	if s.log {
		for v := s.min; v <= s.max*1.001; v *= 10 {
			out = append(out, v)
		}
		return out
	}
	step := niceStep((s.max - s.min) / 5)
	for v := math.Ceil(s.min/step) * step; v <= s.max*1.0001; v += step {
		out = append(out, v)
	}
	return out
}

// niceStep is the least of 1, 2, 5 times a power of ten that is not below v.
func niceStep(v float64) float64 {
	p := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5} {
		if m*p >= v {
			return m * p
		}
	}
	return 10 * p
}

// svg draws the chart.
func (c chart) svg() template.HTML {
	if c.x.max == c.x.min {
		c.x.fit(c.values(func(p point) float64 { return p.x }))
		if !c.x.log {
			c.x.max = max(c.x.max/1.05, c.x.min+1e-9)
		}
	}
	c.y.fit(c.values(func(p point) float64 { return p.y }))
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %d %d" role="img" aria-label="%s">`, chartWidth, chartHeight, html.EscapeString(c.title))
	c.shade(&b)
	c.axes(&b)
	for _, s := range c.series {
		c.line(&b, s)
	}
	b.WriteString("</svg>")
	return template.HTML(b.String())
}

func (c chart) values(of func(point) float64) func(func(float64)) {
	return func(yield func(float64)) {
		for _, s := range c.series {
			for _, p := range s.points {
				yield(of(p))
			}
		}
	}
}

func (c chart) place(p point) (x, y float64) {
	return plotLeft + plotWidth*c.x.at(p.x), plotTop + plotHeight*(1-min(max(c.y.at(p.y), 0), 1))
}

// shade draws the bands, with names where there is room for them.
func (c chart) shade(b *strings.Builder) {
	const letter = 5.6 // width of an average one in SVG units
	for i, d := range c.bands {
		from, _ := c.place(point{max(d.From, c.x.min), c.y.min})
		to, _ := c.place(point{min(d.To, c.x.max), c.y.min})
		if to <= from {
			continue
		}
		if i%2 == 1 {
			fmt.Fprintf(b, `<rect class="band" x="%.1f" y="%d" width="%.1f" height="%.0f"/>`, from, plotTop, to-from, plotHeight)
		}
		if float64(len(d.Name))*letter <= to-from {
			fmt.Fprintf(b, `<text class="name" x="%.1f" y="%d" text-anchor="middle">%s</text>`, (from+to)/2, plotTop-6, html.EscapeString(d.Name))
		}
	}
}

func (c chart) axes(b *strings.Builder) {
	for _, v := range c.y.marks() {
		_, y := c.place(point{c.x.min, v})
		fmt.Fprintf(b, `<line class="grid" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/><text class="tick" x="%d" y="%.1f" text-anchor="end">%s</text>`,
			plotLeft, chartWidth-plotRight, y, y, plotLeft-8, y+4, html.EscapeString(c.y.format(v)))
	}
	for _, v := range c.x.marks() {
		x, _ := c.place(point{v, c.y.min})
		fmt.Fprintf(b, `<text class="tick" x="%.1f" y="%d" text-anchor="middle">%s</text>`, x, chartHeight-12, html.EscapeString(c.x.format(v)))
	}
	foot := chartHeight - plotBottom
	fmt.Fprintf(b, `<line class="axis" x1="%d" x2="%d" y1="%d" y2="%d"/>`, plotLeft, chartWidth-plotRight, foot, foot)
	if !c.y.log && c.y.min < 0 {
		_, zero := c.place(point{c.x.min, 0})
		fmt.Fprintf(b, `<line class="limit" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/>`, plotLeft, chartWidth-plotRight, zero, zero)
	}
}

// line draws one series. A logarithmic axis has no place for zero, so there the line has a gap: nothing was measured.
func (c chart) line(b *strings.Builder, s series) {
	dash := ""
	if s.dashed {
		dash = " dashed"
	}
	var run []point
	flush := func() {
		if len(run) > 0 {
			fmt.Fprintf(b, `<polyline class="line c%d%s" points="`, s.colour, dash)
			for _, p := range run {
				x, y := c.place(p)
				fmt.Fprintf(b, "%.1f,%.1f ", x, y)
			}
			b.WriteString(`"/>`)
		}
		run = run[:0]
	}
	for _, p := range thin(s.points) {
		if c.y.log && p.y <= 0 {
			flush()
			continue
		}
		run = append(run, p)
		x, y := c.place(p)
		fmt.Fprintf(b, `<circle class="dot c%d" cx="%.1f" cy="%.1f" r="4"><title>%s: %s at %s</title></circle>`,
			s.colour, x, y, html.EscapeString(s.name), html.EscapeString(c.y.format(p.y)), html.EscapeString(c.x.format(p.x)))
	}
	flush()
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
