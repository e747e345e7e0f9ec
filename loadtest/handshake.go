package main

import (
	"bufio"
	"crypto/rand"
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// subprotocol is what the contract names.
const subprotocol = "liveroom.v1"

// refusedError is an answer to the upgrade other than 101.
type refusedError struct{ status int }

func (e refusedError) Error() string {
	return fmt.Sprintf("the upgrade was refused with status %d", e.status)
}

// handshake upgrades conn (RFC 6455, section 4.1) and returns the bytes that came behind the answer. deflate asks for
// permessage-deflate, and fails without.
func handshake(conn net.Conn, target *url.URL, timeout time.Duration, deflate bool) (early []byte, err error) {
	if err := conn.SetDeadline(time.Now().Add(timeout)); err != nil {
		return nil, err
	}
	var nonce [16]byte
	rand.Read(nonce[:])
	key := base64.StdEncoding.EncodeToString(nonce[:])
	extensions := ""
	if deflate {
		extensions = "Sec-WebSocket-Extensions: " + deflateOffer + "\r\n"
	}
	_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
		"Sec-WebSocket-Key: %s\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: %s\r\n%s\r\n",
		target.RequestURI(), target.Host, key, subprotocol, extensions)
	if err != nil {
		return nil, err
	}
	br := bufio.NewReaderSize(conn, 1024)
	resp, err := http.ReadResponse(br, nil)
	if err != nil {
		return nil, err
	}
	if err := checkUpgrade(resp, key); err != nil {
		return nil, err
	}
	if deflate {
		if err := checkDeflate(resp); err != nil {
			return nil, err
		}
	}
	early, _ = br.Peek(br.Buffered())
	return early, conn.SetDeadline(time.Time{})
}

// acceptGUID is what a server hashes behind the key (RFC 6455, section 1.3).
const acceptGUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

func checkUpgrade(resp *http.Response, key string) error {
	sum := sha1.Sum([]byte(key + acceptGUID))
	switch {
	case resp.StatusCode != http.StatusSwitchingProtocols:
		return refusedError{resp.StatusCode}
	case resp.Header.Get("Sec-WebSocket-Accept") != base64.StdEncoding.EncodeToString(sum[:]):
		return errors.New("the answer's Sec-WebSocket-Accept is wrong")
	case !strings.EqualFold(resp.Header.Get("Sec-WebSocket-Protocol"), subprotocol):
		return fmt.Errorf("the server did not select %s", subprotocol)
	}
	return nil
}
