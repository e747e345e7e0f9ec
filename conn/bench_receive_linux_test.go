package conn

import (
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"liveroom/conn/socket"
)

// processCPU is the processor time of this process, user and kernel.
func processCPU(b *testing.B) time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &ts); err != nil {
		b.Fatal(err)
	}
	return time.Duration(ts.Nano())
}

// BenchmarkReceive is what a message from a viewer costs the server, its answer included, in processor time of everything
// but the thread that plays the viewers: with sessions that rest between two messages, and in turn with sessions that
// keep a goroutine each. All viewers speak at once, or one every half a millisecond, as 100 viewers do at 20 messages/s.
func BenchmarkReceive(b *testing.B) {
	for _, together := range []bool{true, false} {
		b.Run(fmt.Sprintf("together=%v", together), func(b *testing.B) { benchReceive(b, together) })
	}
}

func benchReceive(b *testing.B, together bool) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	resting, kept := newTalk(b, true), newTalk(b, false)
	rounds := 0
	for b.Loop() {
		if rounds++; rounds%2 == 0 {
			resting.round(b, together)
			kept.round(b, together)
		} else {
			kept.round(b, together)
			resting.round(b, together)
		}
	}
	b.StopTimer()
	messages := float64(rounds * len(kept.peers))
	b.ReportMetric(float64(resting.spent.Nanoseconds())/messages, "cpu-ns/message")
	b.ReportMetric(float64(kept.spent.Nanoseconds())/messages, "kept-cpu-ns/message")
	b.ReportMetric(float64(resting.spent)/float64(kept.spent), "ratio")
	b.ReportMetric(0, "ns/op")
}

// talk is a node with viewers who speak.
type talk struct {
	peers []int
	sink  []byte
	spent time.Duration
}

func newTalk(b *testing.B, rest bool) *talk {
	n := startNode(b, Config{Heartbeat: time.Hour}, newLobby())
	if !rest {
		p, err := socket.NewPoller[*Session]()
		if err != nil {
			b.Fatal(err)
		}
		p.Close() // it watches nobody
		n.once.Do(func() { n.poller = p })
	}
	t := &talk{sink: make([]byte, 4096)}
	for range 100 {
		c, _ := rawJoin(b, n)
		fd, _ := socket.Descriptor(c.Conn)
		t.peers = append(t.peers, fd)
	}
	return t
}

var spoken = masked(opText, []byte(`{"op":"danmaku","id":"c7","text":"hello, everybody","color":"#ffffff","mode":"scroll"}`))

func (t *talk) round(b *testing.B, together bool) {
	process, thread := processCPU(b), threadCPU(b)
	for _, fd := range t.peers {
		if _, err := syscall.Write(fd, spoken); err != nil {
			b.Fatal(err)
		}
		if !together {
			pause(500_000)
			t.hear(b, fd)
		}
	}
	if together {
		for _, fd := range t.peers {
			t.hear(b, fd)
		}
	}
	pause(100_000) // until the readers wait again
	t.spent += processCPU(b) - process - (threadCPU(b) - thread)
}

func (t *talk) hear(b *testing.B, fd int) {
	for {
		k, err := syscall.Read(fd, t.sink)
		if k > 0 {
			return
		}
		if err != syscall.EAGAIN {
			b.Fatal(k, err)
		}
		pause(20_000)
	}
}

func pause(ns int64) { _ = unix.Nanosleep(&unix.Timespec{Nsec: ns}, nil) }
