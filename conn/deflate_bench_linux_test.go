package conn

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"liveroom/conn/socket"
	"liveroom/protocol"
)

// realTick is a tick of n danmaku of real text.
func realTick(b *testing.B, n, seed int) *protocol.Broadcast {
	b.Helper()
	text, err := os.ReadFile("../loadtest/internal/client/corpus.txt")
	if err != nil {
		b.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	mids := protocol.NewMIDs()
	var batch protocol.Batch
	for i := range n {
		k := (seed*31 + i*7919) % len(lines)
		user := protocol.User{ID: "u" + strconv.Itoa(10_000_000+k*77_777), Name: "Viewer " + strconv.Itoa(k*131)}
		batch.Add(protocol.ClassDanmaku, protocol.AppendDanmaku(nil, protocol.Danmaku{MID: mids.Next(), User: user, Text: lines[k], TS: 1_790_000_000_000 + int64(i)}))
	}
	return batch.Build()
}

// BenchmarkDeliverDeflated sends ticks of real text to 1,000 viewers who take deflated frames, the making of the deflated form
// included, beside the same ticks plain and a bare write(2) loop of the plain bytes, over the same sockets in turn. It
// reports the sender's processor time per frame, and the ratios of the medians.
func BenchmarkDeliverDeflated(b *testing.B) {
	for _, danmaku := range []int{1, 2, 4, 8, 16, 50} {
		b.Run(fmt.Sprintf("danmaku=%d", danmaku), func(b *testing.B) { benchDeflated(b, 1000, danmaku) })
	}
}

func benchDeflated(b *testing.B, viewers, danmaku int) {
	n := startNode(b, Config{Heartbeat: time.Hour}, newLobby())
	sessions, peers := make([]*Session, viewers), make([]int, viewers)
	for i := range sessions {
		c, s := rawJoin(b, n)
		sessions[i] = s
		peers[i], _ = socket.Descriptor(c.Conn)
	}
	slices.SortFunc(sessions, func(x, y *Session) int { return x.Order() - y.Order() })
	sink := make([]byte, 64<<10)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	measure := func(times *[]float64, round func()) {
		before := threadCPU(b)
		round()
		*times = append(*times, float64(threadCPU(b)-before)/float64(viewers))
		for _, fd := range peers {
			for {
				if _, err := syscall.Read(fd, sink); err != nil {
					break
				}
			}
		}
	}
	var bare, plain, deflated, making []float64
	in, out := 0, 0
	deliver := func(t *protocol.Broadcast, deflate bool) func() {
		for _, s := range sessions {
			s.reader.frames.Deflate = deflate // nobody reads it meanwhile
		}
		return func() {
			for _, s := range sessions {
				s.Deliver(t)
			}
		}
	}
	rounds := 0
	for b.Loop() {
		rounds++
		tick, other := realTick(b, danmaku, rounds), realTick(b, danmaku, rounds)
		runs := []func(){
			func() {
				bytes := tick.Full().Bytes()
				measure(&bare, func() {
					for _, s := range sessions {
						if _, err := syscall.Write(s.order, bytes); err != nil {
							b.Fatal(err)
						}
					}
				})
			},
			func() { measure(&plain, deliver(tick, false)) },
			func() { measure(&deflated, deliver(tick, true)) },
		}
		for i := range runs { // so that none always finds the caches that the same other has left
			runs[(i+rounds)%len(runs)]()
		}
		before := threadCPU(b)
		other.FullDeflated()
		making = append(making, float64(threadCPU(b)-before))
		in += tick.Full().Len()
		out += tick.FullDeflated().Len()
	}
	b.StopTimer()
	median := func(v []float64) float64 {
		slices.Sort(v)
		return v[len(v)/2]
	}
	b.ReportMetric(median(bare), "bare-cpu-ns/frame")
	b.ReportMetric(median(plain), "plain-cpu-ns/frame")
	b.ReportMetric(median(deflated), "deflated-cpu-ns/frame")
	b.ReportMetric(median(deflated)/median(plain), "deflated/plain")
	b.ReportMetric(median(deflated)/median(bare), "deflated/bare")
	b.ReportMetric(median(making)/1000, "making-µs")
	b.ReportMetric(float64(out)/float64(in), "bytes-ratio")
	b.ReportMetric(0, "ns/op")
	if st := sessions[0].Stats(); st.QueuedFrames != 0 {
		b.Fatalf("a queue was used: %+v", st)
	}
}

// A broadcast to a healthy viewer who takes deflated frames allocates nothing once somebody has asked for the form.
func TestDeliverDeflatedAllocatesNothing(t *testing.T) {
	n := startNode(t, Config{Deflate: true}, newLobby())
	c, s := rawJoinWith(t, n, offerChromium)
	frame := tickOf(30, 1, 7)
	frame.FullDeflated()
	deliversForNothing(t, s, c, frame)
	if in, out := n.deflateBytes(); out == 0 || in != 1001*uint64(frame.Full().Len()) {
		t.Fatalf("%d bytes became %d", in, out)
	}
}
