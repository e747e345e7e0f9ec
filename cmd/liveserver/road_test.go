package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// step is one function of a road that ARCHITECTURE.md draws.
type step struct {
	road, file, name string
	handed           bool // by something else than a call
}

var roadLine = regexp.MustCompile(`^(\w+)?\s+([\w/]+\.go)\s+([\w ]+)$`)

// drawnRoads reads the block of roads.
func drawnRoads(t *testing.T) (steps []step) {
	t.Helper()
	page, err := os.ReadFile("../../ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, ok := strings.Cut(string(page), "The roads by file and function")
	if !ok {
		t.Fatal("ARCHITECTURE.md draws no roads")
	}
	block = strings.SplitN(block, "```", 3)[1]
	road, handed := "", false
	for line := range strings.Lines(block) {
		m := roadLine.FindStringSubmatch(strings.TrimRight(line, "\n"))
		switch {
		case strings.Contains(line, "⇢"):
			handed = true
		case m != nil:
			if m[1] != "" {
				road, handed = m[1], true
			}
			for _, name := range strings.Fields(m[3]) {
				steps = append(steps, step{road, m[2], name, handed})
				handed = false
			}
		case strings.TrimSpace(line) != "":
			t.Errorf("neither a step nor a handing on: %q", line)
		}
	}
	return steps
}

// namesIn returns what the functions of a name in a file name themselves; nil when there is none.
func namesIn(t *testing.T, file, function string) map[string]bool {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), "../../"+file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var names map[string]bool
	for _, d := range parsed.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Name.Name != function {
			continue
		}
		if names == nil {
			names = map[string]bool{}
		}
		ast.Inspect(f.Body, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				names[id.Name] = true
			}
			return true
		})
	}
	return names
}

// TestRoads: what ARCHITECTURE.md draws of a danmaku's and a gift's way is there, each function calls the next, and from the
// socket's read to the last write a danmaku crosses at most eight borders of packages, none of them of main.
func TestRoads(t *testing.T) {
	t.Parallel()
	steps := drawnRoads(t)
	borders := map[string]int{}
	var roads []string
	for i, s := range steps {
		names := namesIn(t, s.file, s.name)
		if names == nil {
			t.Errorf("%s: %s has no function %s", s.road, s.file, s.name)
		}
		if !slices.Contains(roads, s.road) {
			roads = append(roads, s.road)
		}
		if strings.HasPrefix(s.file, "cmd/") {
			t.Errorf("%s: passes through main, in %s", s.road, s.file)
		}
		if i+1 == len(steps) || steps[i+1].road != s.road {
			continue
		}
		next := steps[i+1]
		if !next.handed && !names[next.name] {
			t.Errorf("%s: %s in %s does not call %s", s.road, s.name, s.file, next.name)
		}
		if path.Dir(next.file) != path.Dir(s.file) {
			borders[s.road]++
		}
	}
	if !slices.Equal(roads, []string{"danmaku", "gift"}) {
		t.Errorf("roads drawn: %v", roads)
	}
	if n := borders["danmaku"]; n < 1 || n > 8 {
		t.Errorf("a danmaku crosses %d borders, want at most 8", n)
	}
	first, last := namesIn(t, "conn/rest.go", "readNow"), namesIn(t, "conn/socket/socket_linux.go", "Write")
	if !first["Read"] || len(last) == 0 || steps[0].file != "conn/read.go" {
		t.Error("the danmaku's road does not begin at the read")
	}
	end := slices.IndexFunc(steps, func(s step) bool { return s.road == "gift" }) - 1
	if end < 0 || path.Dir(steps[end].file) != "conn/socket" || steps[end].name != "Write" {
		t.Error("the danmaku's road does not end with the write")
	}
}
