package report

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"time"

	"liveroom/loadtest/internal/client"
)

// The plot's own width and height in the units of the page's SVG, which adds the margins, and the most points of a line.
const (
	plotWidth, plotHeight = 644.0, 204.0
	maxPoints             = 360 // more are thinned to their peaks
)

// chart is one picture of the report, over the time since the first attempt; report.html draws it. What is in seconds has a
// logarithmic axis.
type chart struct {
	Title         string
	Lines         []*line
	Rows, Columns []mark
	Bands         []mark

	form string // see [column]
}

// line is a series of a chart. Where it has a logarithmic axis and nothing was measured, there is a gap.
type line struct {
	Name   string
	Path   string // of the SVG
	points []point
}

// point is a value at a time in seconds.
type point struct{ x, y float64 }

// mark is a text at a place, or over a stretch.
type mark struct {
	At, Width float64
	Text      string
}

// charts are the pictures of a result, those that have something to show.
func (r *Result) charts() (out []*chart) {
	step := max(r.SlotSeconds, 1e-3)
	slots := func(i int) float64 { return r.Timeline[i].At }
	out = appendCharts(out, "", r.Timeline, slots, step)
	for c := range client.Classes {
		var flows []client.Flow
		for _, s := range r.Timeline {
			flows = append(flows, s.Classes[c.String()])
		}
		out = appendCharts(out, c.String()+" ", flows, slots, step)
	}
	out = appendCharts(out, "", r.Server, func(i int) float64 { return r.Server[i].At - r.Began }, 1)
	for _, c := range out {
		c.draw(r.Bands)
	}
	return out
}

// appendCharts adds those that rows have: each field with a tag `chart:"TITLE,LINE,FORM"` is a line, FORM as in a [sheet], or / for
// what was counted in a step of so many seconds and is shown per second.
func appendCharts[T any](charts []*chart, prefix string, rows []T, at func(i int) float64, step float64) []*chart {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[T]()) {
		tag, ok := f.Tag.Lookup("chart")
		if !ok {
			continue
		}
		part := strings.Split(tag, ",")
		title, scale := prefix+part[0], 1.0
		if part[2] == "/" {
			part[2], scale = "0", 1/step
		}
		l, most := &line{Name: part[1]}, 0.0
		for i := range rows {
			y := scale * column{field: f.Index}.of(reflect.ValueOf(rows[i]))
			l.points, most = append(l.points, point{at(i), y}), max(most, y)
		}
		if len(rows) < 2 || most <= 0 {
			continue
		}
		if n := len(charts); n == 0 || charts[n-1].Title != title {
			charts = append(charts, &chart{Title: title, form: part[2]})
		}
		c := charts[len(charts)-1]
		c.Lines = append(c.Lines, l)
	}
	return charts
}

// axis maps values to lengths of 0 to size.
type axis struct {
	min, max, size float64
	log            bool
}

func (a axis) at(v float64) float64 {
	v = min(max(v, a.min), a.max)
	if a.log {
		return a.size * math.Log(v/a.min) / math.Log(a.max/a.min)
	}
	return a.size * (v - a.min) / (a.max - a.min)
}

// marks are the values that the axis names, round ones.
func (a axis) marks() (out []float64) {
	if a.log {
		for v := a.min; v <= a.max*1.001; v *= 10 {
			out = append(out, v)
		}
		return out
	}
	least := (a.max - a.min) / 5
	step := math.Pow(10, math.Floor(math.Log10(least)))
	for _, m := range []float64{2, 2.5, 2} { // 1, 2, 5, 10 times a power of ten
		if step < least {
			step *= m
		}
	}
	for v := math.Ceil(a.min/step) * step; v <= a.max*1.0001; v += step {
		out = append(out, v)
	}
	return out
}

// axes hold all points. A linear one begins at zero and leaves some room above.
func (c *chart) axes() (x, y axis) {
	x, y = axis{math.Inf(1), math.Inf(-1), plotWidth, false}, axis{math.Inf(1), math.Inf(-1), plotHeight, c.form == "s"}
	for _, l := range c.Lines {
		for _, p := range l.points {
			x.min, x.max = min(x.min, p.x), max(x.max, p.x)
			if p.y > 0 {
				y.min, y.max = min(y.min, p.y), max(y.max, p.y)
			}
		}
	}
	if y.log {
		y.min = math.Pow(10, math.Floor(math.Log10(y.min)))
		y.max = max(math.Pow(10, math.Ceil(math.Log10(y.max))), 10*y.min)
	} else {
		y.min, y.max = 0, 1.05*y.max
	}
	x.max = max(x.max, x.min+1e-3)
	return x, y
}

// draw places everything.
func (c *chart) draw(bands []Band) {
	x, y := c.axes()
	for _, v := range y.marks() {
		c.Rows = append(c.Rows, mark{At: plotHeight - y.at(v), Text: column{form: c.form}.text(v)})
	}
	for _, v := range x.marks() {
		c.Columns = append(c.Columns, mark{At: x.at(v), Text: time.Duration(v * 1e9).Round(time.Millisecond).String()})
	}
	const letter = 5.6 // width of an average one
	for _, b := range bands {
		from := x.at(b.From)
		m := mark{from, x.at(b.To) - from, b.Name}
		if float64(len(b.Name))*letter > m.Width {
			m.Text = ""
		}
		c.Bands = append(c.Bands, m)
	}
	for _, l := range c.Lines {
		pen := "M"
		for _, p := range thin(l.points) {
			if y.log && p.y <= 0 {
				pen = "M"
				continue
			}
			l.Path += fmt.Sprintf("%s%.1f %.1f", pen, x.at(p.x), plotHeight-y.at(p.y))
			pen = "L"
		}
	}
}

// thin keeps the highest of neighbouring points, so that no peak is lost.
func thin(points []point) (out []point) {
	n := (len(points) + maxPoints - 1) / maxPoints
	for i, p := range points {
		if i%n == 0 {
			out = append(out, p)
		} else if last := &out[len(out)-1]; p.y > last.y {
			*last = p
		}
	}
	return out
}
