package config

import (
	"os"
	"strings"
	"testing"
)

// TestReadmeTable: the README's table of settings is the one that the code has.
func TestReadmeTable(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), Markdown()) {
		t.Errorf("README.md does not hold this table:\n%s", Markdown())
	}
}
