package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"strings"
	"time"

	"liveroom/internal/config"
	"liveroom/internal/token"
	"liveroom/protocol"
)

// printToken signs a token with the secret of the configuration or of its data directory.
func printToken(ctx context.Context, args []string, stdout io.Writer, environ []string) error {
	var sub, name, role, rooms string
	var ttl time.Duration
	cfg, err := config.Load(args, environ, func(set *flag.FlagSet) {
		set.StringVar(&sub, "sub", "", "")
		set.StringVar(&name, "name", "", "")
		set.StringVar(&role, "role", string(protocol.RoleViewer), "")
		set.StringVar(&rooms, "rooms", "", "")
		set.DurationVar(&ttl, "ttl", 12*time.Hour, "")
	})
	if err != nil {
		return err
	}
	secret, err := runningSecret(cfg)
	if err != nil {
		return err
	}
	authority, err := newAuthority(ctx, cfg, token.Config{Secret: secret}, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	who := token.Identity{
		User: cmp.Or(sub, role), Name: name, Role: protocol.Role(role),
		Rooms: strings.FieldsFunc(rooms, func(r rune) bool { return r == ',' || r == ' ' }),
	}
	signed, err := authority.Issue(who, ttl)
	if errors.Is(err, token.ErrClaims) {
		return config.Fault{
			Path:     "token",
			Allowed:  "a printable -sub that is no guest's, a known -role, -rooms for a host or moderator, a -ttl above 0",
			Received: err.Error(),
		}
	}
	if err == nil {
		_, err = fmt.Fprintln(stdout, signed)
	}
	return err
}

func tokenUsage(w io.Writer) {
	fmt.Fprint(w, `liveserver token prints a token, signed with the server's secret.

  -role viewer|host|moderator|service|admin   default viewer
  -sub USER      the user's id, printable, at most 255 bytes; default: the role
  -name NAME     shown to others; default: the id
  -rooms A,B     rooms of a host or moderator, '*' for all
  -ttl DURATION  how long it is good for, default 12h

The secret is the running server's: say the same -data-dir (default data), -config or LIVEROOM_AUTH_SECRET as it has.
All settings: liveserver -help.
`)
}

// newAuthority makes the authority over tokens as it is configured.
func newAuthority(ctx context.Context, cfg config.Config, c token.Config, log *slog.Logger) (*token.Authority, error) {
	c.Issuer, c.Audience, c.Leeway = cfg.Auth.Issuer, cfg.Auth.Audience, cfg.Auth.Leeway
	return token.NewAuthority(ctx, c, log)
}

// runningSecret is the secret of the server that uses this configuration: one made here would sign for nobody.
func runningSecret(cfg config.Config) (string, error) {
	if cfg.Auth.Secret != "" {
		return cfg.Auth.Secret, nil
	}
	secret, err := token.ReadSecret(cfg.DataDir)
	if errors.Is(err, fs.ErrNotExist) {
		return "", config.Fault{Path: "data_dir", Sentence: fmt.Sprintf(
			"there is no secret in %s to sign with: run this where the server runs, or say its -data-dir, its -config or LIVEROOM_AUTH_SECRET", cfg.DataDir)}
	}
	return secret, err
}

// ownSecret is the configured secret, else the data directory's.
func ownSecret(cfg config.Config) (string, error) {
	if cfg.Auth.Secret != "" {
		return cfg.Auth.Secret, nil
	}
	if err := prepareDataDir(cfg.DataDir); err != nil {
		return "", err
	}
	secret, err := token.Secret(cfg.DataDir)
	if err != nil {
		return "", config.Fault{Path: "data_dir", Allowed: "a directory with a secret, or where one can be kept", Received: err.Error()}
	}
	return secret, nil
}

// sharedSecret is the configured secret, else the one that all nodes on these NATS servers have agreed on, of which the
// data directory gets a copy for the token command.
func (n *node) sharedSecret(ctx context.Context) (string, error) {
	own, err := ownSecret(n.cfg)
	if err != nil || n.cfg.Auth.Secret != "" || n.cfg.Embedded() {
		return own, err
	}
	agreed, err := n.fabric.Secret(ctx, "auth", own)
	if err != nil {
		return "", err
	}
	changed, err := token.KeepSecret(n.cfg.DataDir, agreed)
	if changed {
		n.log.Info("took over the nodes' secret; tokens signed by this node's own are void")
	}
	return agreed, err
}
