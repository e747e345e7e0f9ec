package model

import (
	"fmt"
	"image/color"
	"math"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// palette is told apart by people who see few colours, too (Okabe and Ito).
var palette = []color.RGBA{{0, 114, 178, 255}, {213, 94, 0, 255}, {0, 158, 115, 255}, {204, 121, 167, 255}, {230, 159, 0, 255}, {86, 180, 233, 255}}

type curve struct {
	name   string
	points plotter.XYs
	dashed bool
}

func newPlot(title, x, y string) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.Title.Padding, p.Legend.Padding = vg.Points(6), vg.Points(2)
	p.Legend.Top, p.Legend.Left = true, true
	p.BackgroundColor = color.White
	p.Add(plotter.NewGrid())
	return p
}

func draw(t *testing.T, p *plot.Plot, curves []curve, file string) {
	t.Helper()
	for i, c := range curves {
		line, err := plotter.NewLine(c.points)
		if err != nil {
			t.Fatal(err)
		}
		line.Color, line.Width = palette[i%len(palette)], vg.Points(1.3)
		if c.dashed {
			line.Color, line.Dashes = color.Gray{90}, []vg.Length{vg.Points(4), vg.Points(3)}
		}
		p.Add(line)
		p.Legend.Add(c.name, line)
	}
	if err := p.Save(vg.Points(560), vg.Points(300), file); err != nil {
		t.Fatal(err)
	}
}

// plotPulse shows what each way admits in the second before each instant.
func plotPulse(t *testing.T, results []*Result, dir string) {
	b := results[0].Scenario.Bound
	p := newPlot("50x pulse on 20 nodes: admitted in the second before", "seconds", "messages")
	p.Y.Max = 1600 // room for the legend
	var curves []curve
	length := results[0].Scenario.Length
	for _, r := range slices.Backward(results) { // ours on top
		if r.Scenario.Way == FixedShare {
			continue
		}
		curves = append(curves, curve{name: r.Scenario.Way.String(), points: lastSecond(r.admitted[0], length)})
	}
	most := float64(b.Burst) + b.perSecond()
	curves = append(curves, curve{name: "burst + rate x 1 s", dashed: true, points: plotter.XYs{{X: 0, Y: most}, {X: length.Seconds(), Y: most}}})
	draw(t, p, curves, filepath.Join(dir, "scale-pulse.svg"))
}

// lastSecond counts admissions in the second before each 50 ms.
func lastSecond(list []Admission, length time.Duration) plotter.XYs {
	slices.SortFunc(list, func(a, b Admission) int { return int(a.At - b.At) })
	var points plotter.XYs
	from, to := 0, 0
	for at := time.Duration(0); at <= length; at += 50 * time.Millisecond {
		for to < len(list) && list[to].At <= at {
			to++
		}
		for from < to && list[from].At <= at-time.Second {
			from++
		}
		points = append(points, plotter.XY{X: at.Seconds(), Y: float64(to - from)})
	}
	return points
}

// plotCalls shows calls a second over demand, both in powers of ten.
func plotCalls(t *testing.T, dir string) {
	p := newPlot("Calls to the store for one room of 200 messages a second", "messages a second that ask, all nodes", "calls a second")
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.X.Tick.Marker, p.Y.Tick.Marker = decades{}, decades{}
	draw(t, p, []curve{
		{name: "a call per message", points: sweep(t, PerMessage, 3)},
		{name: "leases, 20 nodes", points: sweep(t, Leases, 20)},
		{name: "leases, 3 nodes", points: sweep(t, Leases, 3)},
	}, filepath.Join(dir, "scale-calls.svg"))
}

// decades marks powers of ten.
type decades struct{}

func (decades) Ticks(lo, hi float64) []plot.Tick {
	var ticks []plot.Tick
	for e := math.Floor(math.Log10(lo)); e <= math.Ceil(math.Log10(hi)); e++ {
		for m := range 9 {
			tick := plot.Tick{Value: float64(m+1) * math.Pow(10, e)}
			if m == 0 {
				tick.Label = fmt.Sprintf("%g", tick.Value)
			}
			ticks = append(ticks, tick)
		}
	}
	return ticks
}
