package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	roadBegins   = "## The road of Gate.Decide"
	longestRoad  = 6 // files that somebody reads who wants to know what a decision does
	roadsPackage = "../../limit"
)

var (
	roadFile = regexp.MustCompile(`^ (\w+\.go) `)
	roadName = regexp.MustCompile(`\b[A-Za-z]\w+\b`)
)

// TestDecideIsAStraightRoad: ARCHITECTURE.md draws Gate.Decide over at most six files; each function it names stands in the file
// that it is drawn in and is called by one above it.
func TestDecideIsAStraightRoad(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(page), roadBegins)
	parts := strings.Split(rest, "```")
	if !ok || len(parts) < 3 {
		t.Fatal("ARCHITECTURE.md draws no road of Gate.Decide")
	}
	var files []string
	called := map[string]bool{"Decide": true}
	steps := 0
	var declared map[string]*ast.FuncDecl
	for line := range strings.Lines(parts[1]) {
		if m := roadFile.FindStringSubmatch(line); m != nil {
			if slices.Contains(files, m[1]) {
				t.Errorf("the road comes to %s twice", m[1])
			}
			files = append(files, m[1])
			declared = functionsOf(t, filepath.Join(roadsPackage, m[1]))
			line = line[len(m[0]):]
		}
		names, _, _ := strings.Cut(strings.TrimLeft(line, " │▼\n"), "   ") // what follows is for people
		for _, name := range roadName.FindAllString(names, -1) {
			steps++
			f := declared[name]
			if f == nil {
				t.Errorf("%s has no function %s", files[len(files)-1], name)
				continue
			}
			if !called[name] {
				t.Errorf("%s is called by nothing above it", name)
			}
			ast.Inspect(f.Body, func(n ast.Node) bool {
				if c, ok := n.(*ast.CallExpr); ok {
					switch fun := c.Fun.(type) {
					case *ast.Ident:
						called[fun.Name] = true
					case *ast.SelectorExpr:
						called[fun.Sel.Name] = true
					}
				}
				return true
			})
		}
	}
	if len(files) > longestRoad || steps < 2*longestRoad {
		t.Errorf("%d steps over the files %v, want at most %d files", steps, files, longestRoad)
	}
}

// functionsOf returns what a file declares, by name; of methods of one name the longest, which is the one that is told of.
func functionsOf(t *testing.T, file string) map[string]*ast.FuncDecl {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*ast.FuncDecl{}
	for _, d := range parsed.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && (all[f.Name.Name] == nil || f.End()-f.Pos() > all[f.Name.Name].End()-all[f.Name.Name].Pos()) {
			all[f.Name.Name] = f
		}
	}
	return all
}
