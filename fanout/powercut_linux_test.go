package fanout

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"liveroom/protocol"
)

// crowdDir tells a process of this test binary to be a node on that directory that stores gifts of many senders.
const crowdDir = "LIVEROOM_FANOUT_CROWD"

const crowdSenders = 100

// crowd stores gifts until it is killed, and says on stdout which were acknowledged and which were shown.
func crowd(dir string) {
	ctx := context.Background()
	f, err := Open(ctx, Config{NodeID: "n1", DataDir: dir}, slog.New(slog.DiscardHandler))
	if err != nil {
		panic(err)
	}
	if _, err := f.Feeds.Subscribe(ctx, "demo", crowdEars{}); err != nil {
		panic(err)
	}
	last, err := f.Store.Gifts.LastGift(ctx, "demo")
	if err != nil {
		panic(err)
	}
	var n atomic.Uint64
	n.Store(last)
	for range crowdSenders {
		go func() {
			for {
				i := n.Add(1)
				r, err := f.Store.Gifts.StoreGift(ctx, "demo", "u", fmt.Sprint("c", last, "-", i), crowdGift(last, i))
				if err != nil {
					panic(err)
				}
				fmt.Printf("acked %d c%d-%d\n", r.Seq, last, i)
			}
		}()
	}
	select {}
}

// crowdGift is as long as a gift.
func crowdGift(begun, i uint64) []byte { return fmt.Appendf(nil, "c%d-%d %0200d", begun, i, i) }

type crowdEars struct{ victimEars }

func (crowdEars) Gift(g protocol.StoredGift) {
	id, _, _ := bytes.Cut(g.Event, []byte(" "))
	fmt.Printf("shown %d %s\n", g.Seq, id)
}

// TestAPowerCutTakesNothing: a node stores the gifts of many senders on a file system of its own. It is stopped at any instant, and what
// has reached the device by then is all that a next start finds, as after a loss of power: each gift that was acknowledged or shown is
// there under its sequence, whether it was synced with others or alone.
func TestAPowerCutTakesNothing(t *testing.T) {
	t.Parallel()
	device, at := filepath.Join(t.TempDir(), "device"), t.TempDir()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	tool := func(name string, args ...string) {
		t.Helper()
		if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
			t.Fatalf("%s (needs e2fsprogs, mount and the right to use both): %v %s", name, err, out)
		}
	}
	must(os.WriteFile(device, nil, 0o600))
	must(os.Truncate(device, 64<<20))
	tool("mkfs.ext4", "-q", device)
	if out, err := exec.Command("mount", "-o", "loop", device, at).CombinedOutput(); err != nil && (os.Geteuid() != 0 || bytes.Contains(out, []byte("loop device"))) {
		t.Logf("a power cut can't be judged here, without the right to mount or a loop device: %s", out)
		return
	} else if err == nil {
		must(unix.Unmount(at, 0))
	}
	promised := map[string]string{} // by sequence
	for range 3 {
		tool("mount", "-o", "loop", device, at)
		left := cutPower(t, device, at, promised)
		must(os.WriteFile(device, left, 0o600))
	}
	tool("mount", "-o", "loop", device, at)
	t.Cleanup(func() { _ = unix.Unmount(at, unix.MNT_DETACH) })
	f := open(t, Config{NodeID: "n1", DataDir: filepath.Join(at, "data")})
	if err := f.Store.Gifts.Whole(); err != nil {
		t.Error(err)
	}
	found := map[string]string{}
	for last := uint64(0); ; {
		gifts, err := f.Store.Gifts.Gifts(testContext(t), "demo", last, 1000)
		must(err)
		if len(gifts) == 0 {
			break
		}
		for _, g := range gifts {
			id, _, _ := strings.Cut(string(g.Event), " ")
			found[fmt.Sprint(g.Seq)], last = id, g.Seq
		}
	}
	for seq, id := range promised {
		if found[seq] != id {
			t.Errorf("gift %s was promised as %s and is %q", seq, id, found[seq])
		}
	}
	t.Logf("%d gifts promised, %d found", len(promised), len(found))
}

// cutPower runs a node for some gifts and returns what the device holds at an instant in the middle of others. What was acknowledged and
// shown until then is added to promised.
func cutPower(t *testing.T, device, at string, promised map[string]string) []byte {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), crowdDir+"="+filepath.Join(at, "data"))
	c.Stderr = t.Output()
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = c.Process.Kill()
		_ = c.Wait() // killed
		if err := unix.Unmount(at, 0); err != nil {
			t.Error("unmount:", err)
		}
	}()
	acked, in := 0, bufio.NewScanner(out)
	for acked < 500 && in.Scan() {
		f := strings.Fields(in.Text())
		if was, ok := promised[f[1]]; ok && was != f[2] {
			t.Errorf("gift %s is %s, and was %s", f[1], f[2], was)
		}
		promised[f[1]] = f[2]
		if f[0] == "acked" {
			acked++
		}
	}
	if acked < 500 {
		t.Fatal("the node ended by itself")
	}
	if err := c.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for { // the kernel may be writing
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		one, err := os.ReadFile(device)
		if err != nil {
			t.Fatal(err)
		}
		two, err := os.ReadFile(device)
		if err == nil && bytes.Contains(stat, []byte(") T ")) && bytes.Equal(one, two) {
			return two
		}
	}
}
