package socket

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pair is both ends of a TCP connection.
func pair(t *testing.T) (ours, theirs net.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if theirs, err = net.Dial("tcp", ln.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if ours, err = ln.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ours.Close(); theirs.Close() })
	return ours, theirs
}

type woken struct {
	who    *int
	hangup bool
}

// Who is added hears of what comes, of the end too, and of nothing once forgotten; a descriptor that is used again is the
// next one's.
func TestPoller(t *testing.T) {
	p, err := NewPoller[*int]()
	if err != nil {
		t.Fatal(err)
	}
	heard, done := make(chan woken, 16), make(chan struct{})
	go func() {
		defer close(done)
		p.Run(func(who *int, hangup bool) { heard <- woken{who, hangup} })
	}()
	defer func() { p.Close(); <-done }()
	next := func() woken {
		t.Helper()
		select {
		case w := <-heard:
			return w
		case <-time.After(20 * time.Second):
			t.Fatal("nothing was heard")
			return woken{}
		}
	}
	ours, theirs := pair(t)
	fd, raw := Descriptor(ours)
	first := new(int)
	if err := p.Add(raw, first); err != nil {
		t.Fatal(err)
	}
	var r Reader
	r.Init()
	buf := make([]byte, 8)
	if n, err := r.Read(raw, buf); n != 0 || !errors.Is(err, ErrWouldBlock) {
		t.Fatalf("%d bytes, %v", n, err)
	}
	_, _ = theirs.Write([]byte("hello"))
	if w := next(); w != (woken{first, false}) {
		t.Fatalf("%+v", w)
	}
	if n, err := r.Read(raw, buf); string(buf[:n]) != "hello" || err != nil {
		t.Fatalf("%q, %v", buf[:n], err)
	}
	theirs.Close()
	if w := next(); w != (woken{first, true}) {
		t.Fatalf("%+v", w)
	}
	if n, err := r.Read(raw, buf); n != 0 || !errors.Is(err, io.EOF) {
		t.Fatalf("%d bytes, %v", n, err)
	}
	second := new(int)
	p.register(fd, second) // as after the number was given to another socket
	if p.Forget(fd, first); p.Len() != 1 {
		t.Fatal("the next one's was forgotten")
	}
	if p.Forget(fd, second); p.Len() != 0 {
		t.Fatal("it is remembered")
	}
}

// Two pieces go out as one, in order.
func TestWriteBoth(t *testing.T) {
	ours, theirs := pair(t)
	fd, _ := Descriptor(ours)
	LimitUnsent(fd, 1<<17)
	if n, err := WriteBoth(fd, []byte("one "), []byte("two")); n != 7 || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
	CloseWrite(fd)
	if b, err := io.ReadAll(theirs); string(b) != "one two" || err != nil {
		t.Fatalf("%q, %v", b, err)
	}
}
