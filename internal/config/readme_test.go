package config

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// readmeTable renders the settings as README.md shows them.
func readmeTable() string {
	var b strings.Builder
	b.WriteString("| key | value | default | meaning |\n|---|---|---|---|\n")
	for _, s := range Settings() {
		def := s.Default
		switch {
		case s.Key == "gifts":
			def = "a small catalogue"
		case def == "":
			def = "–"
		default:
			def = "`" + def + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", s.Key, s.Unit, def, strings.ReplaceAll(s.Doc, "|", "\\|"))
	}
	return b.String()
}

// TestReadmeListsEverySetting holds the configuration table of README.md to the code. With UPDATE_README=1 it writes it.
func TestReadmeListsEverySetting(t *testing.T) {
	const path, begin, end = "../../README.md", "<!-- settings: held to the code by a test -->\n", "<!-- end of settings -->"
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(raw), begin)
	table, tail, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatal("README.md has lost the marks around its table")
	}
	if table == readmeTable() {
		return
	}
	if os.Getenv("UPDATE_README") == "" {
		t.Fatalf("README.md has an old table; write it with UPDATE_README=1 go test ./internal/config\nwant:\n%s", readmeTable())
	}
	if err := os.WriteFile(path, []byte(head+begin+readmeTable()+end+tail), 0o644); err != nil {
		t.Fatal(err)
	}
}
