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
	"os"
	"os/exec"
	"strings"
)

// upgraderCommand makes this program the bare upgrade loop.
const upgraderCommand = "bare-upgrader"

// startUpgrader starts the bare upgrade loop where the server runs, and returns its address. What was started is
// returned with an error too.
func startUpgrader(ctx context.Context, cpus string) (*child, string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, "", err
	}
	cmd := exec.Command(self, upgraderCommand)
	cmd.Env = append(os.Environ(), childVariable+"=1")
	address := ""
	c, err := begin(ctx, upgraderCommand, cmd, cpus, func(line string) bool { address = line; return true })
	return c, address, err
}

// upgradeBare is the process: it prints its address and runs until it is killed.
func upgradeBare(stdout, stderr io.Writer) int {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(stderr, err)
		return exitMissed
	}
	fmt.Fprintf(stdout, "http://%s\n", ln.Addr())
	for {
		conn, err := ln.Accept()
		if err != nil {
			fmt.Fprintln(stderr, err)
			return exitMissed
		}
		go welcomeBare(conn)
	}
}

// bareWelcome is a welcome that is no room's, about as long as a server's.
var bareWelcome = serverText(`[{"ev":"welcome","id":"h","node":"bare","session":"bare","time":1,"cursor":{"gift":0,"chat":0},` +
	`"pad":"` + strings.Repeat("x", 600) + `"}]`)

// serverText is a text frame of a server (RFC 6455, section 5.2), of 126 bytes or more.
func serverText(s string) []byte {
	frame := []byte{0x80 | opText, 126, 0, 0}
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
	sum := sha1.Sum([]byte(key + acceptGUID))
	if _, err := fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
		"Sec-WebSocket-Accept: %s\r\nSec-WebSocket-Protocol: %s\r\n\r\n", base64.StdEncoding.EncodeToString(sum[:]), subprotocol); err != nil {
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
		if err != nil || n > 0 && !first && buf[0] == 0x80|opClose {
			return
		}
	}
}
