package config

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestEveryDependencyIsExplained: each direct dependency of go.mod has a line in ARCHITECTURE.md that says what it saves.
func TestEveryDependencyIsExplained(t *testing.T) {
	module, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(page), "## Dependencies")
	if !ok {
		t.Fatal("ARCHITECTURE.md has no section on dependencies")
	}
	table = strings.ToLower(table)
	n := 0
	for _, line := range strings.Split(string(module), "\n") {
		m := regexp.MustCompile(`^\t(\S+) v\S+$`).FindStringSubmatch(line) // an indirect one has a comment
		if m == nil {
			continue
		}
		n++
		parts := strings.Split(regexp.MustCompile(`/v\d+$`).ReplaceAllString(m[1], ""), "/")
		if name := strings.ToLower(parts[len(parts)-1]); !strings.Contains(table, strings.TrimSuffix(name, "-go")) {
			t.Errorf("%s: ARCHITECTURE.md does not say what it saves", m[1])
		}
	}
	if n < 10 {
		t.Errorf("only %d dependencies were found", n)
	}
}
