package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Arguments that make this program one half of the bare loop.
const (
	bareWriterCommand = "bare-writer"
	bareReaderCommand = "bare-reader"
)

// bare is what no server can be faster than: a process that writes the same bytes to as many sockets as a room has
// viewers, one write(2) each and nothing else, and one that reads them.
type bare struct {
	writer, reader *child
	orders         net.Conn
	answers        *bufio.Reader
}

// startBare starts both with n sockets between them, the writer where the server runs, the reader where this tool does.
// What was started is returned with an error too.
func startBare(ctx context.Context, n int, writerCPUs, readerCPUs string) (*bare, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	b, address := &bare{}, ""
	start := func(cpus string, heard func(string) bool, args ...string) (*child, error) {
		cmd := exec.Command(self, args...)
		cmd.Env = append(os.Environ(), childVariable+"=1")
		return begin(ctx, args[0], cmd, cpus, heard)
	}
	b.writer, err = start(writerCPUs, func(line string) bool { address = line; return true }, bareWriterCommand)
	if err != nil {
		return b, err
	}
	if b.orders, err = net.Dial("tcp", address); err != nil { // the writer takes the first socket for its orders
		return b, err
	}
	b.answers = bufio.NewReader(b.orders)
	if err := b.ask("sockets", n); err != nil {
		return b, err
	}
	b.reader, err = start(readerCPUs, func(line string) bool { return line == "ready" }, bareReaderCommand, address, strconv.Itoa(n))
	return b, err
}

// timed is the processor time, in seconds, of count passes: in each the writer writes a frame of size bytes to the next so
// many sockets, every interval or, when that is too short, one pass after the other.
func (b *bare) timed(count int, every time.Duration, size, sockets int) (float64, error) {
	pid := b.writer.cmd.Process.Pid
	before, err := processTime(pid)
	if err != nil {
		return 0, err
	}
	if err := b.ask("pass", count, int64(every), size, sockets); err != nil {
		return 0, err
	}
	after, err := processTime(pid)
	return after - before, err
}

// ask gives an order and waits until it is carried out.
func (b *bare) ask(order ...any) error {
	if _, err := fmt.Fprintln(b.orders, order...); err != nil {
		return err
	}
	answer, err := b.answers.ReadString('\n')
	if err != nil {
		return fmt.Errorf("the bare loop is gone: %w\n%s", err, b.writer.log)
	}
	if answer = strings.TrimSpace(answer); answer != "done" {
		return errors.New("the bare loop: " + answer)
	}
	return nil
}

func (b *bare) stop() {
	if b.orders != nil {
		b.orders.Close()
	}
	for _, c := range []*child{b.writer, b.reader} {
		if c != nil {
			c.kill() // they hold nothing that must be put away
		}
	}
}

// writeBare is the process of the writer. It prints where it listens, and ends with the socket of its orders.
func writeBare(stdout, stderr io.Writer) int {
	if err := obeyBare(stdout); err != nil && !errors.Is(err, io.EOF) {
		fmt.Fprintln(stderr, err)
		return exitMissed
	}
	return exitOK
}

func obeyBare(stdout io.Writer) error {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintln(stdout, ln.Addr())
	orders, err := ln.Accept()
	if err != nil {
		return err
	}
	defer orders.Close()
	var accepting sync.WaitGroup
	defer accepting.Wait()
	defer ln.Close()
	var fds []int
	for in := bufio.NewReader(orders); ; {
		line, err := in.ReadString('\n')
		if err != nil {
			return err
		}
		answer := "done"
		var count, size, sockets int
		var every int64
		if n, _ := fmt.Sscan(strings.TrimPrefix(line, "sockets"), &count); n == 1 && strings.HasPrefix(line, "sockets") {
			accepting.Go(func() { fds = acceptBare(ln, count) })
		} else if n, _ := fmt.Sscan(strings.TrimPrefix(line, "pass"), &count, &every, &size, &sockets); n == 4 {
			accepting.Wait()
			if err := writePasses(fds, count, time.Duration(every), size, sockets); err != nil {
				answer = err.Error()
			}
		} else {
			answer = "what is " + line
		}
		if _, err := fmt.Fprintln(orders, answer); err != nil {
			return err
		}
	}
}

// acceptBare takes n sockets, fewer when the listener is closed, in the order of their descriptors.
func acceptBare(ln net.Listener, n int) (fds []int) {
	for range n {
		conn, err := ln.Accept()
		if err != nil {
			return fds
		}
		fd, err := detach(conn)
		if err != nil {
			return fds
		}
		fds = append(fds, fd)
	}
	return fds
}

// writePasses is the bare loop.
func writePasses(fds []int, count int, every time.Duration, size, sockets int) error {
	frame := make([]byte, size)
	start, next := time.Now(), 0
	for i := range count {
		sleepUntil(start.Add(time.Duration(i) * every))
		for range min(sockets, len(fds)) {
			if err := writeFully(fds[next%len(fds)], frame); err != nil {
				return err
			}
			next++
		}
	}
	return nil
}

// readBare is the process of the reader: it connects n sockets to address and reads what comes until they end.
func readBare(address, sockets string, stdout, stderr io.Writer) int {
	n, err := strconv.Atoi(sockets)
	var wg sync.WaitGroup
	for range n {
		var conn net.Conn
		if conn, err = net.Dial("tcp", address); err != nil {
			break
		}
		wg.Go(func() {
			defer conn.Close()
			buf := make([]byte, 8<<10)
			for {
				if _, err := conn.Read(buf); err != nil {
					return
				}
			}
		})
	}
	if err != nil {
		fmt.Fprintln(stderr, err)
		return exitMissed
	}
	fmt.Fprintln(stdout, "ready")
	wg.Wait()
	return exitOK
}
