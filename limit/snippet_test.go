package limit_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheSnippetOfTheDocsCompiles builds the program of docs/limits.md as a stranger does: in a module of its own that points
// at this one.
func TestTheSnippetOfTheDocsCompiles(t *testing.T) {
	t.Parallel()
	here, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join(here, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	_, rest, _ := strings.Cut(read("docs/limits.md"), "```go\n")
	program, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("docs/limits.md has no program")
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"main.go": program, "go.sum": read("go.sum"), "go.mod": "module shop\n\ngo 1.26.0\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{
		{"mod", "edit", "-require", "liveroom@v0.0.0", "-replace", "liveroom=" + here},
		{"build", "-mod=mod", "-o", filepath.Join(dir, "shop"), "."},
	} {
		cmd := exec.Command("go", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}
