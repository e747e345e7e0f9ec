package main

import (
	"context"
	"crypto/tls"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"liveroom/internal/config"
	"liveroom/internal/node"
	"liveroom/internal/token"
	"liveroom/protocol"
)

// backUp asks the server of this configuration, which runs on this machine, for all that it keeps. The file appears when it is whole.
func backUp(ctx context.Context, args []string, stdout io.Writer, environ []string) error {
	file, args, err := fileArgument("backup", args)
	if err != nil {
		return err
	}
	var cert, key string
	cfg, err := config.Load(args, environ, func(set *flag.FlagSet) {
		set.StringVar(&cert, "client-cert", "", "")
		set.StringVar(&key, "client-key", "", "")
	})
	if err != nil {
		return err
	}
	bearer, err := signing(ctx, cfg, "backup")
	if err != nil {
		return err
	}
	signed, err := bearer()
	if err != nil {
		return err
	}
	road := localRoad()
	if err := show(road, cert, key); err != nil {
		return err
	}
	addr := loopback(cfg.AdminAddr)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, scheme(cfg.AdminTLS.TLS)+addr+node.BackupPath, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+signed)
	res, err := (&http.Client{Transport: road}).Do(req)
	if err != nil {
		return fmt.Errorf("no server answers at %s: %w", addr, err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(io.LimitReader(res.Body, 4<<10)) // what there is of it
		return fmt.Errorf("%s answers %s: %s", addr, res.Status, strings.TrimSpace(string(said)))
	}
	made, size, err := node.KeepBackup(file, res.Body)
	if err == nil {
		_, err = fmt.Fprintf(stdout, "%s: %d bytes, node %s, %s, by %s\n", file, size, made.Node, made.Made.Format(time.RFC3339), made.Version)
	}
	return err
}

// signing returns what signs an admin's token for a minute, by this configuration.
func signing(ctx context.Context, cfg config.Config, user string) (bearer func() (string, error), err error) {
	authority, err := node.Authority(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return func() (string, error) {
		return authority.Issue(token.Identity{User: user, Role: protocol.RoleAdmin}, time.Minute)
	}, nil
}

// show has a road show a certificate, if one is named.
func show(road *http.Transport, cert, key string) error {
	if cert == "" {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return config.Fault{Path: "client-cert", Allowed: "a PEM certificate that belongs to client-key", Received: err.Error()}
	}
	road.TLSClientConfig.Certificates = []tls.Certificate{pair}
	return nil
}

// restore fills an empty data directory from a backup.
func restore(ctx context.Context, args []string, stdout, stderr io.Writer, environ []string) error {
	file, args, err := fileArgument("restore", args)
	if err != nil {
		return err
	}
	cfg, err := config.Load(args, environ, nil)
	if err != nil {
		return err
	}
	cfg.NodeID = node.ID(cfg)
	done, err := node.Restore(ctx, cfg, file, slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelError})))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "%s holds what node %s kept at %s: %d gifts. Gifts of after that are not in it; the ledger has a new name, so that settlements start over.\n",
		cfg.DataDir, done.Node, done.Made.Format(time.RFC3339), done.Gifts)
	return err
}

// fileArgument takes the file, which stands first.
func fileArgument(command string, args []string) (file string, rest []string, err error) {
	if len(args) == 0 || args[0] == "" || strings.HasPrefix(args[0], "-") {
		return "", nil, config.Fault{Path: command, Allowed: "the name of a file, and then flags", Received: strings.Join(args, " ")}
	}
	return args[0], args[1:], nil
}
