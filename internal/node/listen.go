package node

import (
	"errors"
	"net"
	"syscall"

	"liveroom/internal/config"
)

// listeners are the server's open ports.
type listeners struct {
	main  net.Listener // plain; TLS is laid over it by the HTTP server
	admin net.Listener
}

// listen opens both ports, or none.
func listen(cfg config.Config) (*listeners, error) {
	ln, err := listenOn("addr", cfg.Addr)
	if err != nil {
		return nil, err
	}
	admin, err := listenOn("admin_addr", cfg.AdminAddr)
	if err != nil {
		ln.Close()
		return nil, err
	}
	return &listeners{main: ln, admin: admin}, nil
}

func listenOn(path, addr string) (net.Listener, error) {
	ln, err := net.Listen("tcp", addr)
	if err == nil {
		return ln, nil
	}
	received := addr + ": " + err.Error()
	if errors.Is(err, syscall.EADDRINUSE) {
		received = addr + ", which another process is using"
	}
	return nil, config.Fault{Path: path, Allowed: "an address that is free to listen on", Received: received}
}

func (l *listeners) close() {
	l.main.Close()
	l.admin.Close()
}
