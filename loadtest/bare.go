package main

import (
	"bufio"
	"context"
	"crypto/sha1"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/rpc"
	"strconv"
	"strings"
	"sync"
	"time"

	"liveroom/loadtest/internal/client"
	"liveroom/loadtest/internal/process"
)

// Arguments that make this program one half of the bare loop.
const (
	bareWriterCommand = "bare-writer"
	bareReaderCommand = "bare-reader"
)

// bare is what no server can be faster than: a process that writes the same bytes to as many sockets as a room has
// viewers, one write(2) each and nothing else, and one that reads them.
type bare struct {
	writer, reader *process.Child
	orders         *rpc.Client
}

// withBare runs f beside a bare loop of n sockets, the writer where the server runs, the reader where this tool does.
func (b *bench) withBare(ctx context.Context, n int, f func(*bare) error) error {
	loop, err := startBare(ctx, n, b.o.serverCPUs, b.o.loadCPUs)
	defer loop.stop()
	if err != nil {
		return err
	}
	return f(loop)
}

// startBare starts both. What was started is returned with an error too.
func startBare(ctx context.Context, n int, writerCPUs, readerCPUs string) (*bare, error) {
	b, address := &bare{}, ""
	var err error
	b.writer, err = process.BeginSelf(ctx, writerCPUs, func(line string) bool { address = line; return true }, bareWriterCommand)
	if err != nil {
		return b, err
	}
	if b.orders, err = rpc.Dial("tcp", address); err != nil { // the writer takes the first socket for its orders
		return b, err
	}
	if err := b.ask("Accept", n); err != nil {
		return b, err
	}
	b.reader, err = process.BeginSelf(ctx, readerCPUs, func(line string) bool { return line == "ready" }, bareReaderCommand, address, strconv.Itoa(n))
	return b, err
}

// ask gives an order and waits until it is carried out.
func (b *bare) ask(order string, what any) error {
	if err := b.orders.Call("bare."+order, what, new(int)); err != nil {
		return fmt.Errorf("the bare loop: %w\n%s", err, b.writer.Log)
	}
	return nil
}

// timed is the processor time, in seconds, of the passes.
func (b *bare) timed(p Passes) (float64, error) {
	return process.Timed(b.writer.Cmd.Process.Pid, func() error { return b.ask("Write", p) })
}

func (b *bare) stop() {
	if b.orders != nil {
		b.orders.Close()
	}
	for _, c := range []*process.Child{b.writer, b.reader} {
		if c != nil {
			c.Kill() // they hold nothing that must be put away
		}
	}
}

// writeBare is the process of the writer. It prints where it listens, and ends with the socket of its orders.
func writeBare(stdout io.Writer) error {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintln(stdout, ln.Addr())
	orders, err := ln.Accept()
	if err != nil {
		return err
	}
	w, s := &bareWriter{ln: ln}, rpc.NewServer()
	if err := s.RegisterName("bare", w); err != nil {
		return err
	}
	s.ServeConn(orders)
	ln.Close()
	w.accepting.Wait()
	return nil
}

// bareWriter carries out orders, one after the other (net/rpc).
type bareWriter struct {
	ln        net.Listener
	accepting sync.WaitGroup
	fds       []int // in the order of the descriptors
}

// Accept begins to take n sockets, fewer when the listener is closed.
func (w *bareWriter) Accept(n int, _ *int) error {
	w.accepting.Go(func() {
		for range n {
			conn, err := w.ln.Accept()
			if err != nil {
				return
			}
			if fd, err := client.Detach(conn); err == nil && client.Blocking(fd) == nil {
				w.fds = append(w.fds, fd)
			}
		}
	})
	return nil
}

// Passes are what the bare loop writes: in each pass a frame of Size bytes to the next so many Sockets, every interval or,
// when that is too short, one pass after the other.
type Passes struct {
	Count         int
	Every         time.Duration
	Size, Sockets int
}

// Write is the bare loop.
func (w *bareWriter) Write(p Passes, _ *int) error {
	w.accepting.Wait()
	frame := make([]byte, p.Size)
	start, next := time.Now(), 0
	for i := range p.Count {
		client.SleepUntil(start.Add(time.Duration(i) * p.Every))
		for range min(p.Sockets, len(w.fds)) {
			if err := client.WriteFully(w.fds[next%len(w.fds)], frame); err != nil {
				return err
			}
			next++
		}
	}
	return nil
}

// readBare is the process of the reader: it connects n sockets to address and reads what comes until they end.
func readBare(address, sockets string, stdout io.Writer) error {
	n, err := strconv.Atoi(sockets)
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	for range n {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return err
		}
		wg.Go(func() {
			defer conn.Close()
			for buf := make([]byte, 8<<10); err == nil; {
				_, err = conn.Read(buf)
			}
		})
	}
	fmt.Fprintln(stdout, "ready")
	wg.Wait()
	return nil
}

// upgraderCommand makes this program the bare upgrade loop.
const upgraderCommand = "bare-upgrader"

// startUpgrader starts the bare upgrade loop where the server runs, and returns its address. What was started is
// returned with an error too.
func startUpgrader(ctx context.Context, cpus string) (c *process.Child, address string, err error) {
	c, err = process.BeginSelf(ctx, cpus, func(line string) bool { address = line; return true }, upgraderCommand)
	return c, address, err
}

// upgradeBare is the process: it prints its address and runs until it is killed.
func upgradeBare(stdout io.Writer) error {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "http://%s\n", ln.Addr())
	for {
		conn, err := ln.Accept()
		if err != nil {
			return err
		}
		go welcomeBare(conn)
	}
}

// bareWelcome is a welcome that is no room's, about as long as a server's.
var bareWelcome = serverText(`[{"ev":"welcome","id":"h","node":"bare","session":"bare","time":1,"cursor":{"gift":0,"chat":0},` +
	`"pad":"` + strings.Repeat("x", 600) + `"}]`)

// serverText is a text frame of a server (RFC 6455, section 5.2), of 126 bytes or more.
func serverText(s string) []byte {
	frame := []byte{0x80 | client.OpText, 126, 0, 0}
	binary.BigEndian.PutUint16(frame[2:], uint16(len(s)))
	return append(frame, s...)
}

// welcomeBare upgrades, reads a frame, answers the welcome, and reads on until the viewer goes.
func welcomeBare(conn net.Conn) {
	defer conn.Close()
	in := bufio.NewReaderSize(conn, 1024)
	key := ""
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		if line = strings.TrimSpace(line); line == "" {
			break
		}
		if v, ok := strings.CutPrefix(line, "Sec-WebSocket-Key: "); ok {
			key = v
		}
	}
	sum := sha1.Sum([]byte(key + client.AcceptGUID))
	if _, err := fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
		"Sec-WebSocket-Accept: %s\r\nSec-WebSocket-Protocol: %s\r\n\r\n", base64.StdEncoding.EncodeToString(sum[:]), client.Subprotocol); err != nil {
		return
	}
	if _, err := in.ReadByte(); err != nil { // of the hello; the rest is read below
		return
	}
	if _, err := conn.Write(bareWelcome); err != nil {
		return
	}
	buf := make([]byte, 512)
	for first := true; ; first = false {
		n, err := in.Read(buf)
		if err != nil || n > 0 && !first && buf[0] == 0x80|client.OpClose {
			return
		}
	}
}
