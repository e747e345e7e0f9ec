//go:build !linux

package socket

import (
	"errors"
	"syscall"
)

// Poller is not available here: whoever waits keeps a small goroutine in [Readable].
type Poller[S comparable] struct{}

func NewPoller[S comparable]() (*Poller[S], error) { return nil, errors.ErrUnsupported }

func (*Poller[S]) Add(syscall.RawConn, S) error { return errors.ErrUnsupported }
func (*Poller[S]) Forget(int, S)                {}
func (*Poller[S]) Len() int                     { return 0 }
func (*Poller[S]) Run(func(S, bool))            {}
func (*Poller[S]) Close()                       {}
