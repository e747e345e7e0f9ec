package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	"liveroom/internal/config"
	"liveroom/internal/node"
	"liveroom/internal/token"
	"liveroom/protocol"
)

// printToken signs a token with the secret of the configuration or of its data directory.
func printToken(ctx context.Context, args []string, stdout io.Writer, environ []string) error {
	var sub, name, role, rooms, attrs string
	var ttl time.Duration
	cfg, err := config.Load(args, environ, func(set *flag.FlagSet) {
		set.StringVar(&sub, "sub", "", "")
		set.StringVar(&name, "name", "", "")
		set.StringVar(&role, "role", string(protocol.RoleViewer), "")
		set.StringVar(&rooms, "rooms", "", "")
		set.StringVar(&attrs, "attrs", "", "")
		set.DurationVar(&ttl, "ttl", 12*time.Hour, "")
	})
	if err != nil {
		return err
	}
	authority, err := node.Authority(ctx, cfg)
	if err != nil {
		return err
	}
	who := token.Identity{
		User: cmp.Or(sub, role), Name: name, Role: protocol.Role(role),
		Rooms: strings.FieldsFunc(rooms, func(r rune) bool { return r == ',' || r == ' ' }),
	}
	if attrs != "" {
		var given map[string]json.RawMessage
		if json.Unmarshal([]byte(attrs), &given) != nil {
			return config.Fault{Path: "attrs", Allowed: `a JSON object such as {"level":12}`, Received: attrs}
		}
		var bad *protocol.Error
		if who.Attrs, bad = protocol.ParseAttrs(given, cfg.Protocol.Attributes); bad != nil {
			return config.Fault{Path: "attrs", Sentence: bad.Detail}
		}
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
  -attrs JSON    what is said of the user, such as '{"level":12}', of the names in protocol.attributes
  -ttl DURATION  how long it is good for, default 12h

The secret is the running server's: say the same -data-dir (default data), -config or LIVEROOM_AUTH_SECRET as it has.
All settings: liveserver -help.
`)
}
