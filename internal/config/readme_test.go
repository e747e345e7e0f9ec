package config

import (
	"os"
	"regexp"
	"slices"
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

// TestReadmesAreParallel: the Chinese README has the headings, tables, settings, commands and links of the English one.
func TestReadmesAreParallel(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile("../../" + name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	en, zh := read("README.md"), read("README.zh-CN.md")
	for what, pattern := range map[string]string{
		"headings": `(?m)^#+ `, "settings": "(?m)^\\| `[\\w.]+` ", "rows of tables": `(?m)^\|`, "points": `(?m)^- `,
		"commands": `(?m)^(make \w+|go run \S+|liveserver [^\n]*|curl [^\n]*)`, "links": `\]\((docs|deploy|[A-Z]+\b)[^)#]*`,
	} {
		find := func(text string) []string {
			found := regexp.MustCompile(pattern).FindAllString(text, -1)
			if what == "links" {
				slices.Sort(found)
				found = slices.Compact(found)
				found = slices.DeleteFunc(found, func(l string) bool { return strings.Contains(l, "README") })
			}
			return found
		}
		if a, b := find(en), find(zh); !slices.Equal(a, b) {
			t.Errorf("%s differ:\n%q\n%q", what, a, b)
		}
	}
}
