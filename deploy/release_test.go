package deploy_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestRelease makes a release of one platform, as make release does of six: from a tag, with nothing but what the repository tracks.
func TestRelease(t *testing.T) {
	src := sources(t)
	out := t.TempDir()
	release := func() (string, error) {
		cmd := exec.CommandContext(t.Context(), filepath.Join(src, "deploy/release/release.sh"), out)
		cmd.Env = append(os.Environ(), "PLATFORMS=linux/amd64")
		said, err := cmd.CombinedOutput()
		return string(said), err
	}
	git(t, src, "init", "-q")
	git(t, src, "add", "-A")
	git(t, src, "commit", "-qm", "everything")
	if said, err := release(); err == nil || !strings.Contains(said, "release: the commit has no tag such as v1.2.3") {
		t.Errorf("without a tag: %v %s", err, said)
	}
	git(t, src, "tag", "v0.0.7")
	if said, err := release(); err == nil || !strings.Contains(said, `release: CHANGELOG.md has no section "## 0.0.7"`) {
		t.Errorf("without notes: %v %s", err, said)
	}
	page := filepath.Join(src, "CHANGELOG.md")
	if err := os.WriteFile(page, []byte(strings.Replace(read(t, page), "## Unreleased", "## 0.0.7", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if said, err := release(); err == nil || !strings.Contains(said, "release: there are changes that are in no commit") {
		t.Errorf("with changes: %v %s", err, said)
	}
	git(t, src, "commit", "-qam", "release 0.0.7")
	git(t, src, "tag", "-f", "v0.0.7")
	if said, err := release(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	want := []string{"NOTES.md", "SHA256SUMS", "liveroom-0.0.7-linux-amd64.cdx.json", "liveroom-0.0.7-linux-amd64.tar.gz", "liveroom-client-0.0.7.tgz", "liveroom_0.0.7_amd64.deb"}
	if got := entries(t, out); !slices.Equal(got, want) {
		t.Errorf("made %q, want %q", got, want)
	}
	in := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = out
		var errs bytes.Buffer
		cmd.Stderr = &errs
		said, err := cmd.Output()
		if err != nil {
			t.Errorf("%s %v: %v\n%s", name, args, err, &errs)
		}
		return string(said)
	}
	if n := strings.Count(in("sha256sum", "-c", "SHA256SUMS"), ": OK\n"); n != len(want)-1 {
		t.Errorf("%d checksums", n)
	}
	in("tar", "-xzf", want[3])
	if said := in("./liveroom-0.0.7-linux-amd64/liveserver", "version"); !strings.HasPrefix(said, "liveserver v0.0.7 ") || !strings.Contains(said, "nats-server/v2 v2.") {
		t.Errorf("version says %s", said)
	}
	if notes := read(t, filepath.Join(out, "NOTES.md")); !strings.Contains(notes, "### Added") {
		t.Errorf("notes: %s", notes)
	}
	if bill := read(t, filepath.Join(out, want[2])); !strings.Contains(bill, `"purl": "pkg:golang/liveroom@v0.0.7"`) {
		t.Errorf("bill of materials: %.300s", bill)
	}
	if control := in("dpkg-deb", "--field", want[5]); !strings.Contains(control, "Package: liveroom\nVersion: 0.0.7\n") || !strings.Contains(control, "Architecture: amd64") {
		t.Errorf("control: %s", control)
	}
	files := in("dpkg-deb", "--contents", want[5])
	for _, file := range []string{"-rwxr-xr-x root/root", " ./usr/bin/liveserver\n", " ./usr/lib/systemd/system/liveserver.service\n", " ./etc/liveroom/liveroom.yaml\n", " ./usr/share/doc/liveroom/operate.md\n"} {
		if !strings.Contains(files, file) {
			t.Errorf("the package lacks %q:\n%s", file, files)
		}
	}
	if conf := in("dpkg-deb", "--info", want[5], "conffiles"); conf != "/etc/liveroom/liveroom.yaml\n" {
		t.Errorf("conffiles: %q", conf)
	}
	in("tar", "-xzf", want[4])
	const use = `import("./package/" + JSON.parse(require("fs").readFileSync("package/package.json")).exports).then(m => console.log(typeof m.Connection))`
	if said := in("node", "-e", use); said != "function\n" {
		t.Errorf("the client from the tarball: %q", said)
	}
}

// git runs in dir as nobody in particular.
func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir, "-c", "user.name=n", "-c", "user.email=n@example.com", "-c", "commit.gpgsign=false", "-c", "tag.gpgsign=false"}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}
