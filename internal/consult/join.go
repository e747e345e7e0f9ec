package consult

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"liveroom/internal/hook"
	"liveroom/limit"
	"liveroom/protocol"
	"liveroom/room"
)

// TypeJoin is the type of a call that asks who may come in.
const TypeJoin = "join.check"

// joinData is what a call says of a joiner.
type joinData struct {
	Room  string        `json:"room"`
	User  protocol.User `json:"user"`
	Guest bool          `json:"guest,omitempty"`
}

// mostMute bounds a mute, as that of a moderator.
const mostMute = 30 * 24 * time.Hour

// Admission is the answer.
type Admission struct {
	Allow *bool `json:"allow"`
	// Of a yes: what is not said stays as the token has it.
	Role  protocol.Role              `json:"role"`
	Attrs map[string]json.RawMessage `json:"attrs"`
	Mute  int                        `json:"mute"` // seconds
	// Of a no.
	Text string `json:"text"` // for the joiner, in the joiner's language

	names []string // of the attributes that are looked at
	guest bool
	attrs *protocol.Attrs
}

// Roles that a hook may give. Those that hold in all rooms are for tokens alone.
var grantable = []protocol.Role{"", protocol.RoleViewer, protocol.RoleModerator, protocol.RoleHost}

// Check implements [hook.Answer].
func (a *Admission) Check() error {
	switch {
	case a.Allow == nil:
		return errors.New(`want "allow": true or false`)
	case !*a.Allow:
		return nil
	case !slices.Contains(grantable, a.Role):
		return errors.New(`"role" is none of viewer, moderator, host`)
	case a.guest && a.Role != "" && a.Role != protocol.RoleViewer:
		return errors.New(`"role" of a guest can only be viewer`)
	case a.Mute < 0 || a.Mute > int(mostMute.Seconds()):
		return fmt.Errorf(`"mute" is not 0 to %d seconds`, int(mostMute.Seconds()))
	case a.Attrs == nil:
		return nil
	}
	maps.DeleteFunc(a.Attrs, func(name string, _ json.RawMessage) bool { return !slices.Contains(a.names, name) })
	attrs, err := protocol.ParseAttrs(a.Attrs, a.names)
	if err != nil {
		what, _, _ := strings.Cut(err.Detail, "; received") // which is nobody's business
		return errors.New(what)
	}
	a.attrs = &attrs
	return nil
}

// Joins asks the platform who may come in.
type Joins struct {
	cfg   Config
	names []string
	told  complaints
}

var _ room.JoinHook = (*Joins)(nil)

// NewJoins returns what asks about joins. Of attributes those with one of the names are looked at.
func NewJoins(cfg Config, attributes []string) *Joins { return &Joins{cfg: cfg, names: attributes} }

// laterRetry is the least wait that is told when nobody could say who may come in.
const laterRetry = time.Second

// MayJoin implements [room.JoinHook].
func (j *Joins) MayJoin(ctx context.Context, roomID string, who *room.Identity) (room.Grant, *protocol.Error) {
	a := Admission{names: j.names, guest: who.Guest()}
	data := joinData{Room: roomID, User: protocol.User{ID: who.User, Name: who.Name, Role: who.Role, Attrs: who.Attrs}, Guest: a.guest}
	// A question changes nothing, so that it may be asked again.
	err := j.cfg.Platform.Call(ctx, hook.Call{ID: "join_" + rand.Text(), Type: TypeJoin, Data: data, Repeat: true}, &a)
	switch {
	case err != nil:
		j.cfg.count(saidNothing)
		j.told.tell(&j.cfg, roomID, err)
		if j.cfg.OnTimeout == Refuse {
			return room.Grant{}, &protocol.Error{Reason: protocol.ReasonUnavailable, RetryAfter: limit.Jitter(laterRetry)}
		}
		return room.Grant{}, nil
	case !*a.Allow:
		j.cfg.count(saidRefuse)
		return room.Grant{}, &protocol.Error{Reason: protocol.ReasonRejected, Detail: hook.Words(a.Text)}
	}
	j.cfg.count(saidAllow)
	return room.Grant{Role: a.Role, Attrs: a.attrs, Mute: time.Duration(a.Mute) * time.Second}, nil
}
