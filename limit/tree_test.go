package limit

import (
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"
)

// hostile are texts that unfold, nest, or cost their reader much, at the size that is read.
func hostile() map[string]string {
	const size = maxSpecBytes - 64
	fill := func(s string) string { return strings.Repeat(s, size/len(s)) }
	count := func(f string) string {
		var b strings.Builder
		for i := 0; b.Len() < size; i++ {
			fmt.Fprintf(&b, f, i)
		}
		return b.String()
	}
	laughs := func(levels, refs int) string {
		b := "a0: &a0 [x, x, x]\n"
		for i := 1; i <= levels; i++ {
			b += fmt.Sprintf("a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), refs), ","))
		}
		return b + fmt.Sprintf("rules: *a%d\n", levels)
	}
	merges := "m0: &m0 {name: a}\n"
	for i := 1; i < 40; i++ {
		merges += fmt.Sprintf("m%d: &m%d {<<: [*m%d, *m%d], k%d: 1}\n", i, i, i-1, i-1, i)
	}
	wide := "big: &big {" + strings.Repeat("k: 1,", 1) + strings.TrimSuffix(func() string {
		b := ""
		for i := range 4000 {
			b += fmt.Sprintf("k%d: 1,", i)
		}
		return b
	}(), ",") + "}\nrules:\n" + strings.Repeat("  - {<<: *big}\n", 4000)
	return map[string]string{
		"laughs": laughs(8, 9), "laughs, many": laughs(28, 500), "merges": merges, "wide": wide, "self": "a: &a [*a]\nrules: *a\n",
		"self merged": "rules: [&a {<<: *a, name: x}]", "block keys": count("k%d: 1\n"), "flow keys": "{" + count("k%d: 1,") + "}",
		"list": fill("- 1\n"), "flow list": "rules: [" + fill("1,") + "]", "json": `{"rules":[` + fill("[1],") + "1]}", "json keys": "{" + count(`"k%d":1,`) + `"rules":[]}`,
		"faults": "rules: [" + fill("{a: 1},") + "]", "anchors": count("- &a%d 1\n"), "brackets": fill("["), "dashes": fill("- "), "braces": fill("{a: "),
		"digits": "rules: [{rate: " + fill("9") + "}]", "exponent": "rules: [{rate: 1e" + fill("9") + "}]", "long": "rules: " + fill("x"),
		"escapes": `rules: "` + fill(`\x41`) + `"`, "folded": `rules: "` + fill("x\n") + `"`, "comments": count("a%d: # c\n"), "tags": fill("!!str "),
		"keys of lists": fill("? [a]\n"), "documents": fill("---\n"), "one line": fill("a: "), "spaces": fill(" "), "colons": fill(":"), "semicolons": "a: [" + fill("x y ") + "]",
	}
}

// Whatever is sent, reading it costs at most 64 MB in all, garbage included, and the answer stays short.
func TestNoTextCostsMoreThanItIsWorth(t *testing.T) {
	for name, text := range hostile() {
		if len(text) > maxSpecBytes {
			t.Fatalf("%s: %d bytes", name, len(text))
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		spec, err := Parse([]byte(text))
		if err == nil {
			_, err = spec.Compile()
		}
		runtime.ReadMemStats(&after)
		if mb := (after.TotalAlloc - before.TotalAlloc) >> 20; mb > 64 {
			t.Errorf("%s: %d MB for %d bytes", name, mb, len(text))
		}
		if err != nil && len(err.Error()) > 64<<10 {
			t.Errorf("%s: an answer of %d bytes", name, len(err.Error()))
		}
	}
}

// Aliases and merge keys mean what YAML says, up to what a set can need.
func TestAliasesAndMergeKeys(t *testing.T) {
	spec, err := Parse([]byte(`
rules:
  - &base {name: a, action: danmaku, scope: user, rate: 1, burst: 3, multiply: &staff {host: 5}}
  - {<<: *base, name: b, burst: 4}
  - <<: [{rate: 7}, *base]
    name: c
    multiply: *staff
`))
	if err != nil {
		t.Fatal(err)
	}
	a := Rule{Name: "a", Action: StringList{"danmaku"}, Scope: "user", Limit: Limit{Rate: 1, Burst: 3}, Multiply: map[string]int64{"host": 5}}
	b, c := a, a
	b.Name, b.Burst, c.Name, c.Rate = "b", 4, "c", 7
	if want := []Rule{a, b, c}; !reflect.DeepEqual(spec.Rules, want) {
		t.Errorf("have %+v", spec.Rules)
	}
	for text, want := range map[string]string{
		hostile()["laughs"]:                "unfolds to more than 50000 values",
		"rules: &a\n- *a":                  "nests deeper than 32",
		"rules: []\nrules: []":             "line 2: the key \"rules\" stands twice",
		`{"rules":[],"rules":[]}`:          `the key "rules" stands twice, at byte 19`,
		"rules: [{<<: 1}]":                 "line 1: << wants a mapping",
		"rules: [{? [a]: 1}]":              "line 1: a key is text",
		"version: 123456789012345678901\n": "version: want a whole number, have 123456789012345678901",
	} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %s", text, err, want)
		}
	}
}
