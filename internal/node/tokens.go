package node

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"github.com/cespare/xxhash/v2"

	"liveroom/internal/config"
	"liveroom/internal/token"
	"liveroom/limit"
	"liveroom/protocol"
	"liveroom/room"
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
	c.Issuer, c.Audience, c.Leeway, c.Attributes = cfg.Auth.Issuer, cfg.Auth.Audience, cfg.Auth.Leeway, cfg.Protocol.Attributes
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

// ownSecret is the configured secret, else the data directory's, which gets one if it has none.
func ownSecret(cfg config.Config) (string, error) {
	if cfg.Auth.Secret != "" {
		return cfg.Auth.Secret, nil
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
	agreed, err := n.fabric.Store.Secrets.Secret(ctx, "auth", own)
	if err != nil {
		return "", err
	}
	changed, err := token.KeepSecret(n.cfg.DataDir, agreed)
	if changed {
		n.log.Info("took over the nodes' secret; tokens signed by this node's own are void")
	}
	return agreed, err
}

// verify reads a token that a member offers in place of its own.
func (n *Node) verify(roomID, signed string) (room.Identity, *protocol.Error) {
	who, err := n.tokens.Verify(signed)
	if err != nil {
		refusal := token.Refusal(err)
		refusal.Detail = "token: " + refusal.Detail
		return room.Identity{}, refusal
	}
	if !who.Allows(roomID) {
		return room.Identity{}, &protocol.Error{Reason: protocol.ReasonForbidden, Detail: "token: for other rooms"}
	}
	return identityOf(who, n.tokens.Leeway()), nil
}

// identityOf is who a token names, as a room knows somebody. The socket outlives the token by the leeway that the clocks of
// platform and server are given when a token is verified; meanwhile a client can still refresh it.
func identityOf(i token.Identity, leeway time.Duration) room.Identity {
	who := room.Identity{User: i.User, Name: i.Name, Role: i.Role, Attrs: i.Attrs, Traits: limit.NewTraits(string(i.Attrs)), Expires: i.Expires.Add(leeway), Proof: proofOf(i.ID)}
	if i.Guest {
		who.Born = i.Issued
	}
	return who
}

// markKey is a key of its own made of the nodes' secret, so that a mark proves nothing about a token.
func markKey(secret string) []byte {
	h := hmac.New(sha256.New, []byte(secret))
	h.Write([]byte("liveroom marks of networks and devices"))
	return h.Sum(nil)
}

// proofOf is what a session keeps of its token's ID. Two IDs alike in 64 bits would be cut together; an ID is no secret
// and nothing is granted by it.
func proofOf(id string) uint64 { return xxhash.Sum64String(id) }

// learnRevoked makes the authority refuse what was revoked on any node, ever since.
func (n *Node) learnRevoked(ctx context.Context) error {
	unlearn, err := n.fabric.Store.Revoked.FollowRevoked(ctx, func(name string, at time.Time, known bool) {
		if n.revoked.Add(name, at) && !known {
			n.cut(name)
		}
	})
	if err == nil {
		n.closers.add("unlearn", 0, func(context.Context) error { unlearn(); return nil })
	}
	return err
}

// cut closes this node's sessions that go by the name.
func (n *Node) cut(name string) {
	match := func(who *room.Identity) bool { return token.UserName(who.User) == name }
	if id, ok := token.IDOf(name); ok {
		proof := proofOf(id)
		match = func(who *room.Identity) bool { return who.Proof == proof }
	}
	if cut := n.hub.Disconnect(match, protocol.Refusal{Code: protocol.CloseToken, Detail: token.ErrRevoked.Error()}); cut > 0 {
		n.log.Info("cut what was revoked", "sessions", cut)
	}
}
