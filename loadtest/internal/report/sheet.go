package report

import (
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"liveroom/loadtest/internal/client"
)

// sheet is a table of a result: a slice of structs, each of which is a row. A field with a tag `col:"HEAD,FORM,QUANTITY"` is a
// column of it. FORM is s for seconds, B for bytes, % for a share, or a number of decimals. The median of a column with a
// QUANTITY is that figure of the run.
type sheet struct {
	title, first string // first heads the rows' names
	rows         any
	names        []string // of the rows; nil: what their label method says, else they have numbers
	feet         []string // quantities that are told below
}

// sheets are all that a result may have, in the order of the summary.
func (r *Result) sheets() []sheet {
	latencyNames, latencies := inOrder(r.Latencies, client.Measures)
	classNames, classes := inOrder(r.Classes, client.Classes)
	out := []sheet{
		{title: "Latencies", first: "latency", rows: latencies, names: latencyNames},
		{title: "Classes", first: "class", rows: classes, names: classNames},
		{title: "Ramp", first: "sessions", rows: r.Ramp, feet: strings.Fields("memory_per_session memory_per_session_freed heap_per_session goroutines_per_session")},
		{title: "Churn", first: "round", rows: r.Churn},
		{title: "Turns", first: "turn", rows: r.Slow, feet: []string{"slow_ratio"}},
		{title: "Turns, small room", first: "turn", rows: r.Fair, feet: []string{"fair_ratio"}},
		{title: "Rounds", first: "round", rows: r.Frames},
		{title: "Joins", first: "round", rows: r.Joins},
		{title: "Rates", first: "messages/s", rows: r.Tail},
	}
	if q := r.Quota; q != nil {
		stages := q.Stages
		if q.User != nil {
			stages = append(slices.Clone(stages), *q.User)
		}
		out = append(out, sheet{title: "Stages", first: fmt.Sprintf("%d/s + %d", q.Rate, q.Burst), rows: stages})
	}
	return slices.DeleteFunc(out, func(s sheet) bool { return reflect.ValueOf(s.rows).Len() == 0 })
}

// inOrder are the names and values of a map by the names of 0 to n-1.
func inOrder[K interface {
	~uint8
	fmt.Stringer
}, V any](m map[string]V, n K) (names []string, rows []V) {
	for k := range n {
		if v, ok := m[k.String()]; ok {
			names, rows = append(names, k.String()), append(rows, v)
		}
	}
	return names, rows
}

type column struct {
	head, form, quantity string
	field                []int
}

func columns(row reflect.Type) (out []column) {
	for _, f := range reflect.VisibleFields(row) {
		if tag, ok := f.Tag.Lookup("col"); ok {
			part := strings.Split(tag+",,", ",")
			out = append(out, column{part[0], part[1], part[2], f.Index})
		}
	}
	return out
}

// of is the column's figure in a row.
func (c column) of(row reflect.Value) float64 {
	v := row.FieldByIndex(c.field)
	if v.CanInt() {
		return float64(v.Int())
	}
	return v.Float()
}

func (c column) text(v float64) string {
	switch {
	case c.form == "":
		return inCount.Format(v)
	case c.form == "s":
		return InSeconds.Format(v)
	case v == 0 && (c.form == "B" || c.form == "%"):
		return "–"
	case c.form == "B":
		return FormatBytes(v)
	case c.form == "%":
		return fmt.Sprintf("%.1f %%", 100*v)
	}
	return fmt.Sprintf("%."+c.form+"f", v)
}

// Medians makes the medians of rounds figures of the run, where their columns say so.
func (r *Result) Medians(rounds any) {
	rows := reflect.ValueOf(rounds)
	for _, c := range columns(rows.Type().Elem()) {
		if c.quantity == "" {
			continue
		}
		var all []float64
		for i := range rows.Len() {
			all = append(all, c.of(rows.Index(i)))
		}
		r.Values[c.quantity] = Median(all)
	}
}

// write writes the table; of many rows the first, the last, and some between.
func (s sheet) write(w io.Writer, values map[string]float64) {
	rows := reflect.ValueOf(s.rows)
	cols := columns(rows.Type().Elem())
	line := func(name string, cell func(column) string) {
		fmt.Fprint(w, name, "\t")
		for _, c := range cols {
			fmt.Fprint(w, cell(c), "\t")
		}
		fmt.Fprintln(w)
	}
	const head, tail, step, few = 3, 2, 10, 20
	line(s.first, func(c column) string { return c.head })
	for i := range rows.Len() {
		if n := rows.Len(); n > few && i >= head && i < n-tail && (i+1)%step != 0 {
			continue
		}
		row, name := rows.Index(i), strconv.Itoa(i+1)
		if x, ok := row.Interface().(interface{ label() string }); ok {
			name = x.label()
		} else if s.names != nil {
			name = s.names[i]
		}
		line(name, func(c column) string { return c.text(c.of(row)) })
	}
	if slices.ContainsFunc(cols, func(c column) bool { return c.quantity != "" }) {
		line("median", func(c column) string {
			if c.quantity == "" {
				return ""
			}
			return c.text(values[c.quantity])
		})
	}
	for _, name := range s.feet {
		if v, ok := values[name]; ok {
			q, _ := quantityNamed(name)
			fmt.Fprintf(w, "%s\t%s\t\n", strings.ReplaceAll(name, "_", " "), q.unit.Format(v))
		}
	}
}

// text is the table with its columns aligned.
func (s sheet) text(values map[string]float64, gap int) string {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, gap, ' ', tabwriter.AlignRight)
	s.write(t, values)
	t.Flush()
	return strings.TrimRight(b.String(), "\n")
}

func Median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(v))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}
