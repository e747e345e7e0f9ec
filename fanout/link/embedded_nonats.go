//go:build nonats

package link

import (
	"errors"
	"log/slog"
	"net"
)

// embedded stands for the server that this build was made without.
type embedded struct{}

var errWithout = errors.New("fanout: this build has no NATS server inside")

func startEmbedded(Config, *slog.Logger) (*embedded, error) { return nil, errWithout }

func (*embedded) InProcessConn() (net.Conn, error) { return nil, errWithout }
func (*embedded) fault() error                     { return errWithout }
func (*embedded) reopen(bool) error                { return errWithout }
func (*embedded) stop()                            {}
