package main

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	fileList  = regexp.MustCompile(`(?m)^// Files:(.*\n(?://.*\n)*?)(?://\n|package)`)
	fileName  = regexp.MustCompile(`[\w/*.]+\.go\b`)
	mentioned = regexp.MustCompile("`([\\w/*.]+\\.(?:go|lua|js|json|yaml))`")
	built     = regexp.MustCompile(`_(linux|unix|portable|other|race|norace|nonats)\.go$`) // one of several, named by the plain file's line
)

// TestFilesAreNamed: a doc.go that lists its package's files names all of them and no other, and ARCHITECTURE.md names files that
// there are.
func TestFilesAreNamed(t *testing.T) {
	t.Parallel()
	root := os.DirFS("../..")
	var all []string
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.HasPrefix(d.Name(), ".") && name != "." {
			return fs.SkipDir
		}
		all = append(all, name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	lists := 0
	for _, name := range all {
		if path.Base(name) != "doc.go" {
			continue
		}
		text, err := fs.ReadFile(root, name)
		if err != nil {
			t.Fatal(err)
		}
		list := fileList.FindSubmatch(text)
		if list == nil {
			continue
		}
		lists++
		named := fileName.FindAllString(string(list[1]), -1)
		for _, file := range named {
			if !slices.ContainsFunc(all, matches(path.Join(path.Dir(name), file))) {
				t.Errorf("%s names %s, which there is not", name, file)
			}
		}
		for _, file := range all {
			base := path.Base(file)
			if path.Dir(file) == path.Dir(name) && path.Ext(base) == ".go" && base != "doc.go" && !strings.HasSuffix(base, "_test.go") && !built.MatchString(base) && !slices.ContainsFunc(named, func(n string) bool { return matches(n)(base) }) {
				t.Errorf("%s does not name %s", name, base)
			}
		}
	}
	if lists == 0 {
		t.Error("no doc.go lists its files")
	}
	page, err := fs.ReadFile(root, "ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mentioned.FindAllSubmatch(page, -1) {
		pattern := string(m[1])
		if !slices.ContainsFunc(all, matches(pattern)) && !slices.ContainsFunc(all, matches("**/"+pattern)) {
			t.Errorf("ARCHITECTURE.md names %s, which there is not", pattern)
		}
	}
}

// matches tells whether a name is of the pattern; after **/ its directory does not matter, as where a name is said beside a path.
func matches(pattern string) func(string) bool {
	base, anywhere := strings.CutPrefix(pattern, "**/")
	return func(name string) bool {
		if anywhere {
			name = path.Base(name)
		}
		ok, err := path.Match(base, name)
		return ok && err == nil
	}
}
