package main

import (
	"context"
	"crypto/tls"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"liveroom/internal/config"
	"liveroom/internal/top"
)

// How often a node may be looked at.
const (
	lookOften  = 200 * time.Millisecond
	lookSeldom = time.Minute
	// lookTimeout bounds one request.
	lookTimeout = 5 * time.Second
)

// watch shows a node in a terminal: the one of this configuration on this machine, or the one whose admin address is named. What is
// written into a pipe or a file is plain text, once.
func watch(ctx context.Context, args []string, stdout io.Writer, environ []string) error {
	s := top.Screen{Source: &top.Source{}, Every: 2 * time.Second}
	var once bool
	var address, token, cert, key string
	cfg, err := config.Load(args, environ, func(set *flag.FlagSet) {
		set.BoolVar(&once, "once", false, "")
		set.DurationVar(&s.Every, "every", s.Every, "")
		set.StringVar(&s.Sort, "sort", top.Sorts()[0], "")
		set.StringVar(&address, "url", "", "")
		set.StringVar(&token, "token", "", "")
		set.StringVar(&cert, "client-cert", "", "")
		set.StringVar(&key, "client-key", "", "")
	})
	if err != nil {
		return err
	}
	if s.Every < lookOften || s.Every > lookSeldom {
		return config.Fault{Path: "every", Allowed: fmt.Sprintf("%v to %v", lookOften, lookSeldom), Received: s.Every.String()}
	}
	if !slices.Contains(top.Sorts(), s.Sort) {
		return config.Fault{Path: "sort", Allowed: "one of " + strings.Join(top.Sorts(), ", "), Received: s.Sort}
	}
	road := localRoad()
	s.Source.Base = scheme(cfg.AdminTLS.TLS) + loopback(cfg.AdminAddr)
	if address != "" {
		u, err := url.Parse(address)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.User != nil {
			return config.Fault{Path: "url", Allowed: "where operators reach a node, such as http://10.0.0.1:8081", Received: address}
		}
		s.Source.Base, road.TLSClientConfig = u.Scheme+"://"+u.Host, &tls.Config{}
	}
	if err := show(road, cert, key); err != nil {
		return err
	}
	road.DisableKeepAlives = false
	defer road.CloseIdleConnections()
	s.Source.Client = &http.Client{Transport: road, Timeout: lookTimeout}
	s.Source.Bearer = func() (string, error) { return token, nil }
	if token == "" {
		if s.Source.Bearer, err = signing(ctx, cfg, "top"); err != nil {
			return err
		}
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	out, ok := stdout.(*os.File)
	if once || !ok || !term.IsTerminal(int(out.Fd())) {
		return s.Once(ctx, stdout)
	}
	s.Size = func() (wide, high int) {
		if wide, high, err := term.GetSize(int(out.Fd())); err == nil && wide > 0 && high > 0 {
			return wide, high
		}
		return 80, 24
	}
	if in := int(os.Stdin.Fd()); term.IsTerminal(in) {
		was, err := term.MakeRaw(in)
		if err != nil {
			return err
		}
		defer func() { _ = term.Restore(in, was) }() // the terminal may be gone
		s.Keys = os.Stdin
	}
	return s.Run(ctx, out)
}
