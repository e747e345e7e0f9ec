package fanout

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"liveroom/fanout/link"
	"liveroom/protocol"
)

// serverSpec tells a process of this test binary to be a NATS server of a cluster, to be killed.
const serverSpec = "LIVEROOM_FANOUT_SERVER"

// member is one server of a cluster.
type member struct {
	Name           string
	Dir            string
	Client, Routes int   // ports
	Others         []int // the others' Routes
	process        *exec.Cmd
}

func serverProcess(spec string) {
	var m member
	if err := json.Unmarshal([]byte(spec), &m); err != nil {
		panic(err)
	}
	o := &server.Options{
		ServerName: m.Name, Host: "127.0.0.1", Port: m.Client, JetStream: true, StoreDir: m.Dir, NoSigs: true, NoLog: true,
		JetStreamMaxStore: 16 << 30, JetStreamMaxMemory: 1 << 30, SyncAlways: true,
		Cluster: server.ClusterOpts{Name: "test", Host: "127.0.0.1", Port: m.Routes},
	}
	for _, port := range m.Others {
		o.Routes = append(o.Routes, &url.URL{Scheme: "nats", Host: fmt.Sprintf("127.0.0.1:%d", port)})
	}
	s, err := server.NewServer(o)
	if err != nil {
		panic(err)
	}
	s.Start()
	if !s.ReadyForConnections(wait) {
		panic("not ready")
	}
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin) // until the test's process ends, however it ends
	os.Exit(0)
}

// natsCluster makes three servers, none started.
func natsCluster(t *testing.T) []*member {
	t.Helper()
	cluster, ports := make([]*member, 3), freePorts(t, 6)
	dir := t.TempDir()
	for i := range cluster {
		name := fmt.Sprint("s", i)
		others := slices.Delete(slices.Clone(ports[3:]), i, i+1) // with its own among them a server expects one more
		cluster[i] = &member{Name: name, Dir: filepath.Join(dir, name), Client: ports[i], Routes: ports[3+i], Others: others}
	}
	return cluster
}

func freePorts(t *testing.T, n int) (ports []int) {
	t.Helper()
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports
}

func (m *member) start(t *testing.T) {
	t.Helper()
	spec, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	c, _, _ := again(t, serverSpec+"="+string(spec))
	m.process = c
}

// again starts this binary as what a variable of its environment says, see TestMain, until the test ends, and returns its first line.
func again(t *testing.T, variable string) (c *exec.Cmd, in io.Writer, line string) {
	t.Helper()
	c = exec.Command(os.Args[0])
	c.Env, c.Stderr = append(os.Environ(), variable), t.Output()
	to, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = to.Close()
		_ = c.Process.Kill()
		_ = c.Wait() // an error where the test has ended it
	})
	if line, err = bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(line, err)
	}
	return c, to, strings.TrimSpace(line)
}

// kill ends the server without any warning.
func (m *member) kill() {
	_ = m.process.Process.Kill()
	_ = m.process.Wait()
	m.process = nil
}

func clusterURLs(cluster []*member) (urls []string) {
	for _, m := range cluster {
		urls = append(urls, fmt.Sprintf("nats://127.0.0.1:%d", m.Client))
	}
	return urls
}

// streamOf returns how many servers hold a stream, and which one leads it.
func streamOf(t *testing.T, f *Fabric, name string) (replicas int, leader string) {
	t.Helper()
	s, err := f.Link.JS.Stream(testContext(t), name)
	if err != nil {
		return 0, ""
	}
	info := s.CachedInfo()
	if info.Cluster == nil {
		return 1, ""
	}
	return 1 + len(info.Cluster.Replicas), info.Cluster.Leader
}

// A cluster of three: streams on three servers although only one was named; the leader of the gifts is killed while
// gifts flow: they go on, none that was acknowledged is lost, all reach all nodes in order, and the server's return
// changes nothing. Before, with two servers, the streams had two replicas, and grew.
func TestClusterLosesAServer(t *testing.T) {
	t.Parallel()
	cluster := natsCluster(t)
	var up sync.WaitGroup
	for _, m := range cluster[:2] {
		up.Go(func() { m.start(t) })
	}
	up.Wait()
	cfg := func(id string, urls []string) Config {
		return Config{
			NodeID: id, URLs: urls, Shared: true, SweepEvery: 500 * time.Millisecond, GrowEvery: 500 * time.Millisecond,
			ProbeEvery: 200 * time.Millisecond, StoreTimeout: 2 * time.Second, LikesGather: 5 * time.Millisecond,
		}
	}
	n1 := open(t, cfg("n1", clusterURLs(cluster[:1])))
	for _, name := range []string{link.GiftStream, link.RecentStream, link.LikesStream, link.BucketStream(link.SettingsBucket), link.RulesStream, link.BucketStream(link.NodesBucket), link.BucketStream(link.ClusterBucket)} {
		if replicas, _ := streamOf(t, n1, name); replicas != 2 {
			t.Errorf("%s has %d replicas on two servers", name, replicas)
		}
	}
	cluster[2].start(t)
	eventually(t, "the ledger grows", func() bool { replicas, _ := streamOf(t, n1, link.GiftStream); return replicas == 3 })

	n2 := open(t, cfg("n2", clusterURLs(cluster)))
	l1, _ := subscribe(t, n1, "demo")
	l2, _ := subscribe(t, n2, "demo")
	gifts := startGifts(t, n1, n2)
	eventually(t, "gifts flow", func() bool { return gifts.count() > 20 })
	_, leader := streamOf(t, n1, link.GiftStream)
	var victim *member
	for _, m := range cluster {
		if m.Name == leader {
			victim = m
		}
	}
	if victim == nil {
		t.Fatal("no leader")
	}
	victim.kill()
	killed, before := time.Now(), gifts.count()
	eventually(t, "gifts flow again", func() bool { return gifts.count() > before+20 })
	t.Logf("gifts were acknowledged again %v after their leader was killed", time.Since(killed).Round(time.Millisecond))
	if _, err := n1.Store.Recent.Recent(testContext(t), "demo", 1); err != nil {
		t.Error("recent danmaku:", err)
	}
	if err := n2.Store.Likes.AddLikes("demo", 5); err != nil {
		t.Fatal(err)
	}
	if total := receive(t, l1.likes); total != 5 {
		t.Errorf("likes %d", total)
	}
	victim.start(t)
	before = gifts.count()
	eventually(t, "gifts flow with all servers", func() bool { return gifts.count() > before+20 })
	acked := gifts.stop()
	expectAll(t, n1, acked, l1, l2)
	eventually(t, "the nodes are well", func() bool { return n1.Health() == nil && n2.Health() == nil })
	if replicas, _ := streamOf(t, n1, link.GiftStream); replicas != 3 {
		t.Errorf("%d replicas in the end", replicas)
	}
}

// gifts are sent as patient clients do: the same id until it is acknowledged.
type gifts struct {
	quit chan struct{}
	wg   sync.WaitGroup

	mu    sync.Mutex
	acked map[uint64]string // event by sequence
}

// startGifts sends numbered gifts to each node, about 50 a second.
func startGifts(t *testing.T, nodes ...*Fabric) *gifts {
	g := &gifts{quit: make(chan struct{}), acked: map[uint64]string{}}
	for i, f := range nodes {
		g.wg.Go(func() {
			tick := time.NewTicker(20 * time.Millisecond)
			defer tick.Stop()
			for n := 0; ; {
				select {
				case <-g.quit:
					return
				case <-tick.C:
				}
				id := fmt.Sprint(i, ".", n)
				r, err := f.Store.Gifts.StoreGift(testContext(t), "demo", "u", id, []byte(id))
				switch {
				case err == nil:
					g.mu.Lock()
					g.acked[r.Seq] = id
					g.mu.Unlock()
					n++
				case !errors.Is(err, link.ErrRefused) && !errors.Is(err, link.ErrUnknown):
					t.Errorf("gift %s: %v", id, err)
				}
			}
		})
	}
	return g
}

func (g *gifts) count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.acked)
}

// stop ends the sending and returns what was acknowledged.
func (g *gifts) stop() map[uint64]string {
	close(g.quit)
	g.wg.Wait()
	return g.acked
}

// expectAll receives on every node exactly the ledger: all that was acknowledged, and what was stored and not
// acknowledged, each once, in order and without a hole.
func expectAll(t *testing.T, f *Fabric, acked map[uint64]string, nodes ...*listener) {
	t.Helper()
	var ledger []protocol.StoredGift
	for after := uint64(0); ; {
		got, err := f.Store.Gifts.Gifts(testContext(t), "demo", after, 1000)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) == 0 {
			break
		}
		ledger, after = append(ledger, got...), got[len(got)-1].Seq
	}
	missing := len(acked)
	for _, g := range ledger {
		if id, ok := acked[g.Seq]; ok && id == string(g.Event) {
			missing--
		}
	}
	if missing > 0 {
		t.Errorf("%d of %d acknowledged gifts are not in the ledger", missing, len(acked))
	}
	for i, l := range nodes {
		var prev uint64
		for _, want := range ledger {
			got := receive(t, l.gifts)
			if got.Seq != want.Seq || got.Prev != prev || string(got.Event) != string(want.Event) {
				t.Fatalf("node %d: gift %d %q after %d, want %d %q after %d", i+1, got.Seq, got.Event, got.Prev, want.Seq, want.Event, prev)
			}
			prev = got.Seq
		}
	}
	t.Logf("%d gifts acknowledged, %d in the ledger", len(acked), len(ledger))
}
