package conn

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"liveroom/conn/socket"
	"liveroom/protocol"
)

// threadCPU is the processor time of this thread, user and kernel.
func threadCPU(b *testing.B) time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		b.Fatal(err)
	}
	return time.Duration(ts.Nano())
}

// BenchmarkDeliver sends one frame to every viewer per round, by Session.Deliver and by a bare write(2) loop over the same
// sockets in turn. It reports the sender's processor time per frame for both, and the ratio. Viewers read between the rounds, on the
// same thread, outside the measured time.
func BenchmarkDeliver(b *testing.B) {
	for _, viewers := range []int{100, 1000} {
		for _, size := range []int{128, 1024, 4096} {
			b.Run(fmt.Sprintf("viewers=%d/payload=%d", viewers, size), func(b *testing.B) { benchDeliver(b, viewers, size) })
		}
	}
}

func benchDeliver(b *testing.B, viewers, size int) {
	n := startNode(b, Config{Heartbeat: time.Hour}, newLobby()) // its viewers answer no pings
	sessions, peers := make([]*Session, viewers), make([]int, viewers)
	for i := range sessions {
		c, s := rawJoin(b, n)
		sessions[i] = s
		peers[i], _ = socket.Descriptor(c.Conn)
	}
	slices.SortFunc(sessions, func(x, y *Session) int { return x.Order() - y.Order() })
	frame := danmaku(strings.Repeat("x", size-len(danmaku("").Full().Payload())))
	bytes := frame.Full().Bytes()
	sink := make([]byte, 64<<10)
	drain := func() {
		for _, fd := range peers {
			for {
				if _, err := syscall.Read(fd, sink); err != nil {
					break
				}
			}
		}
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var ours, bare time.Duration
	measure := func(sum *time.Duration, round func()) {
		before := threadCPU(b)
		round()
		*sum += threadCPU(b) - before
		drain()
	}
	deliver := func() {
		for _, s := range sessions {
			s.Deliver(frame)
		}
	}
	write := func() {
		for _, s := range sessions {
			if _, err := syscall.Write(s.order, bytes); err != nil {
				b.Fatal(err)
			}
		}
	}
	rounds := 0
	for b.Loop() {
		// In turn, so that neither always finds the caches that the other has left.
		if rounds++; rounds%2 == 0 {
			measure(&ours, deliver)
			measure(&bare, write)
		} else {
			measure(&bare, write)
			measure(&ours, deliver)
		}
	}
	b.StopTimer()
	frames := float64(rounds * viewers)
	b.ReportMetric(float64(ours.Nanoseconds())/frames, "cpu-ns/frame")
	b.ReportMetric(float64(bare.Nanoseconds())/frames, "bare-cpu-ns/frame")
	b.ReportMetric(float64(ours)/float64(bare), "ratio")
	b.ReportMetric(0, "ns/op")
	if st := sessions[0].Stats(); st.QueuedFrames != 0 {
		b.Fatalf("a queue was used: %+v", st)
	}
}

// deliversForNothing delivers a frame 1,001 times to a viewer who reads, and counts allocations.
func deliversForNothing(t *testing.T, s *Session, c *rawConn, frame *protocol.Broadcast) {
	t.Helper()
	fd, _ := socket.Descriptor(c.Conn)
	sink := make([]byte, 64<<10)
	allocs := testing.AllocsPerRun(1000, func() {
		s.Deliver(frame)
		for {
			if k, err := syscall.Read(fd, sink); k <= 0 || err != nil {
				break
			}
		}
	})
	if allocs != 0 {
		t.Fatalf("%v allocations per delivery", allocs)
	}
}

// A broadcast to a healthy viewer allocates nothing.
func TestDeliverAllocatesNothing(t *testing.T) {
	n := startNode(t, Config{}, newLobby())
	c, s := rawJoin(t, n)
	frame := tickOf(3, 1, 7)
	frame.Essential()
	deliversForNothing(t, s, c, frame)
	if got := n.delivered(protocol.ClassDanmaku); got != 3*1001 {
		t.Fatalf("%d deliveries counted", got)
	}
}
