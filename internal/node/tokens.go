package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"

	"liveroom/internal/config"
	"liveroom/internal/token"
)

// Authority signs as the server does that runs with this configuration.
func Authority(ctx context.Context, cfg config.Config) (*token.Authority, error) {
	secret, err := runningSecret(cfg)
	if err != nil {
		return nil, err
	}
	return newAuthority(ctx, cfg, token.Config{Secret: secret}, slog.New(slog.DiscardHandler))
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
func (n *Node) sharedSecret(ctx context.Context) (string, error) {
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
