package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"liveroom/internal/config"
	"liveroom/internal/node"
	"liveroom/internal/token"
	"liveroom/protocol"
)

const (
	// printedRoom is the room of the addresses printed at start.
	printedRoom = "demo"
	// printedTTL is how long the printed tokens are good for.
	printedTTL = 12 * time.Hour
)

// announce prints where people find the server. A token stands in the fragment, which browsers keep to themselves.
func announce(w io.Writer, cfg config.Config, n *node.Node) error {
	viewer := publicURL(cfg, n.Addr())
	admin := scheme(cfg.AdminTLS.TLS) + reachable(n.AdminAddr())
	host, adminPage := viewer+"/host/"+printedRoom, admin+"/"
	if withTokens(cfg.PrintTokens, w) {
		hostToken, err := n.Tokens().Issue(token.Identity{User: "host", Name: "Host", Role: protocol.RoleHost, Rooms: []string{printedRoom}}, printedTTL)
		if err != nil {
			return err
		}
		adminToken, err := n.Tokens().Issue(token.Identity{User: "admin", Name: "Admin", Role: protocol.RoleAdmin}, printedTTL)
		if err != nil {
			return err
		}
		host, adminPage = host+"#token="+hostToken, adminPage+"#token="+adminToken
	}
	_, err := fmt.Fprintf(w, "\nliveroom is up.\n\n  viewer  %s/room/%s\n  host    %s\n  admin   %s\n\nAll rooms: %s/   Ctrl-C stops.\n\n",
		viewer, printedRoom, host, adminPage, viewer)
	return err
}

// withTokens answers print_tokens for this output.
func withTokens(mode string, w io.Writer) bool {
	if mode != config.PrintAuto {
		return mode == config.PrintAlways
	}
	f, isFile := w.(*os.File)
	if !isFile {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

func publicURL(cfg config.Config, addr net.Addr) string {
	if cfg.PublicURL != "" {
		return strings.TrimSuffix(cfg.PublicURL, "/")
	}
	return scheme(cfg.TLS) + reachable(addr)
}

func scheme(files config.TLS) string {
	if files.Enabled() {
		return "https://"
	}
	return "http://"
}

// reachable turns a listening address into one a browser on this machine can open.
func reachable(addr net.Addr) string {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return addr.String()
	}
	return net.JoinHostPort("localhost", fmt.Sprint(tcp.Port))
}
