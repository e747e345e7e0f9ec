// Package report is a run's [Result] and how it is told: as text, as JSON, as one HTML page, and held to objectives.
//
// The one idea: what is shown is said where it is defined, by a field's tag: `col` makes it a column of a table, `chart` a line
// of a picture. A result is filled by one goroutine and then written.
//
// Files: outcome.go, rounds.go (the rows that scenarios fill in), slo.go (names and units of all figures, objectives), sheet.go
// (tables), summary.go (the text), page.go (the page), chart.go (its pictures).
package report
