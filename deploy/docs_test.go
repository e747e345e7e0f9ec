package deploy_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestWhatGoesWrongIsSaid: each sentence that docs/operate.md quotes is one that the server writes.
func TestWhatGoesWrongIsSaid(t *testing.T) {
	_, table, _ := strings.Cut(read(t, "../docs/operate.md"), "## Ten things that go wrong")
	sentences := regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(table, -1)
	if len(sentences) != 10 {
		t.Errorf("%d sentences", len(sentences))
	}
	var sources strings.Builder
	for _, dir := range []string{"cmd", "internal", "conn", "fanout", "limit", "room"} {
		err := fs.WalkDir(os.DirFS(filepath.Join("..", dir)), ".", func(name string, d fs.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
				sources.WriteString(read(t, filepath.Join("..", dir, name)))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range sentences {
		if !strings.Contains(sources.String(), s[1]) {
			t.Errorf("nothing says %q", s[1])
		}
	}
}

// TestPagesAreInOrder: docs/README.md has every page.
func TestPagesAreInOrder(t *testing.T) {
	index := read(t, "../docs/README.md")
	for _, name := range entries(t, "../docs") {
		if ext := filepath.Ext(name); (ext == ".md" || ext == ".yaml") && name != "README.md" && !strings.Contains(index, "("+name+")") {
			t.Errorf("%s is not in docs/README.md", name)
		}
	}
}
