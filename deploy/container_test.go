package deploy_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// patience bounds every wait of these tests; it is long because the machine may be busy.
const patience = 20 * time.Second

// TestContainer makes the image's file system as the Containerfile does, and runs what is in it as an engine would: a root that
// nothing can be written to, the user 65532, the volume and nothing else. Two builds in two places give the same binary.
func TestContainer(t *testing.T) {
	here, elsewhere := sources(t), sources(t)
	root := t.TempDir()
	makeRoot(t, here, root, "")
	again := t.TempDir()
	makeRoot(t, elsewhere, again, "")
	for _, file := range []string{"liveserver", "sbom.cdx.json"} {
		if a, b := digest(t, filepath.Join(root, file)), digest(t, filepath.Join(again, file)); a != b {
			t.Errorf("%s: %s in one place, %s in another", file, a, b)
		}
	}
	wantSize(t, root, 45_000_000)

	env := imageEnvironment(t)
	c := startContainer(t, root, env, "-addr", "127.0.0.1:0", "-admin-addr", freeAddr(t))
	c.awaitHealthy(t)
	if mounts := read(t, fmt.Sprintf("/proc/%d/mountinfo", c.cmd.Process.Pid)); !strings.Contains(mounts, root+" / ro") {
		t.Errorf("the root can be written to:\n%s", mounts)
	}
	if os.Getuid() == 0 && !strings.Contains(read(t, fmt.Sprintf("/proc/%d/status", c.cmd.Process.Pid)), "Uid:\t65532\t65532\t65532\t65532") {
		t.Error("it runs as another user than 65532")
	}
	for _, made := range []string{"nats", "secret"} {
		if _, err := os.Stat(filepath.Join(c.volume, made)); err != nil {
			t.Errorf("not on the volume: %v", err)
		}
	}
	c.stop(t)
	if out, err := c.run("health", "-admin-addr", c.admin).CombinedOutput(); err == nil || !strings.Contains(string(out), "no server answers at "+c.admin) {
		t.Errorf("health of a server that is gone: %v %s", err, out)
	}
}

// TestContainerWithoutNATS: the small build refuses to start without servers, in a sentence, and runs with them.
func TestContainerWithoutNATS(t *testing.T) {
	root := t.TempDir()
	makeRoot(t, sources(t), root, "nonats")
	wantSize(t, root, 25_000_000)
	env := imageEnvironment(t)
	c := &container{root: root, volume: volume(t), env: env}
	out, err := c.run("serve").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "liveserver: nats: allowed is URLs of NATS servers such as nats://host:4222, since this build has none inside; received embedded") {
		t.Errorf("without servers: %v %s", err, out)
	}
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	defer func() { s.Shutdown(); s.WaitForShutdown() }()
	if !s.ReadyForConnections(patience) {
		t.Fatal("the NATS server does not come up")
	}
	c = startContainer(t, root, env, "-addr", "127.0.0.1:0", "-admin-addr", freeAddr(t), "-nats", s.ClientURL(), "-node-id", "small")
	c.awaitHealthy(t)
	c.stop(t)
}

// sources copies what the repository tracks, without its history: only the files decide.
func sources(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "src")
	script := `cd .. && mkdir -p "$0" && { git ls-files -z 2>/dev/null || find . -type f -not -path './bin/*' -print0; } | tar --null --ignore-failed-read -T - -cf - 2>/dev/null | tar -xf - -C "$0"`
	if out, err := exec.Command("sh", "-c", script, dir).CombinedOutput(); err != nil {
		t.Fatalf("copy the sources: %v\n%s", err, out)
	}
	return dir
}

func makeRoot(t *testing.T, src, root, tags string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(src, "deploy/container/rootfs.sh"), root)
	cmd.Env = append(os.Environ(), "TAGS="+tags)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("rootfs.sh: %v\n%s", err, out)
	}
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
}

func digest(t *testing.T, path string) string {
	t.Helper()
	return fmt.Sprintf("%x", sha256.Sum256([]byte(read(t, path))))
}

// wantSize compresses the file system as a registry keeps a layer.
func wantSize(t *testing.T, root string, most int) {
	t.Helper()
	packed, err := exec.CommandContext(t.Context(), "sh", "-c", `tar -C "$0" -cf - . | gzip | wc -c`, root).Output()
	if err != nil {
		t.Fatal(err)
	}
	size, err := strconv.Atoi(strings.TrimSpace(string(packed)))
	if err != nil {
		t.Fatal(err)
	}
	if t.Logf("compressed: %.1f MB", float64(size)/1e6); size > most {
		t.Errorf("%d bytes compressed, want at most %d", size, most)
	}
}

// imageEnvironment is what the Containerfile sets.
func imageEnvironment(t *testing.T) []string {
	t.Helper()
	for line := range strings.Lines(read(t, "container/Containerfile")) {
		if env, ok := strings.CutPrefix(line, "ENV "); ok {
			return strings.Fields(env)
		}
	}
	t.Fatal("the Containerfile sets no environment")
	return nil
}

// container is the image's file system with a volume, and perhaps a process in it.
type container struct {
	root, volume, admin string
	env                 []string
	cmd                 *exec.Cmd
	said                bytes.Buffer
	ended               chan struct{}
}

func startContainer(t *testing.T, root string, env []string, args ...string) *container {
	t.Helper()
	c := &container{root: root, volume: volume(t), env: env, ended: make(chan struct{})}
	for i, a := range args {
		if a == "-admin-addr" {
			c.admin = args[i+1]
		}
	}
	c.cmd = c.run(append([]string{"serve", "-drain-timeout", "100ms"}, args...)...)
	c.cmd.Stdout, c.cmd.Stderr = &c.said, &c.said
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { defer close(c.ended); _ = c.cmd.Wait() }()
	t.Cleanup(func() { _ = c.cmd.Process.Kill(); <-c.ended })
	return c
}

// volume is a directory that the image's user owns.
func volume(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "volume")
	if err := os.Mkdir(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 {
		if err := os.Chown(dir, 65532, 65532); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// run is a command in the container: a mount namespace whose root is the image, read-only, with the volume at /data. Who is not root
// here becomes it in a namespace of users, which has no more rights outside.
func (c *container) run(args ...string) *exec.Cmd {
	namespace, user := []string{"--mount"}, "--userspec=65532:65532"
	if os.Getuid() != 0 {
		namespace, user = []string{"--user", "--map-root-user", "--mount"}, "--userspec=0:0"
	}
	const inside = `mount --bind "$0" "$0" && mount --bind "$1" "$0/data" && mount -o remount,bind,ro "$0" && user=$2 root=$0 && shift 2 && exec chroot "$user" "$root" /liveserver "$@"`
	cmd := exec.Command("unshare", append(append(namespace, "sh", "-c", inside, c.root, c.volume, user), args...)...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, c.env...)
	return cmd
}

// awaitHealthy asks with the image's own health check.
func (c *container) awaitHealthy(t *testing.T) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("it said:\n%s", &c.said)
		}
	}()
	await(t, "healthy container", func() bool {
		select {
		case <-c.ended:
			t.Fatalf("it ended:\n%s", &c.said)
		default:
		}
		return c.run("health", "-admin-addr", c.admin).Run() == nil
	})
}

func (c *container) stop(t *testing.T) {
	t.Helper()
	_ = c.cmd.Process.Signal(syscall.SIGTERM)
	<-c.ended
	if code := c.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("exit code %d after SIGTERM:\n%s", code, &c.said)
	}
}

// freeAddr is an address on which nobody listens at the moment.
func freeAddr(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

// await polls until ok.
func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	end := time.After(patience)
	for !ok() {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("no %s within %v", what, patience)
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	raw, err := io.ReadAll(f) // of /proc, too
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
