//go:build !linux

package client

import (
	"errors"
	"net"
	"time"
)

func newReader(k *sink, _ bool) (reader, error) { return newGoroutineReader(k), nil }

// descriptors is unknown here; the system says so itself when they run out.
func Descriptors() int { return 1 << 20 }

func SleepUntil(at time.Time) { time.Sleep(time.Until(at)) }

var errNotHere = errors.New("only Linux can measure a bare loop")

func Detach(net.Conn) (int, error) { return -1, errNotHere }

func WriteFully(int, []byte) error { return errNotHere }

func Blocking(int) error { return errNotHere }
