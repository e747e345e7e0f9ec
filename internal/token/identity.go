package token

import (
	"slices"
	"time"

	"liveroom/protocol"
)

// AllRooms in a token's rooms stands for every room.
const AllRooms = "*"

// Identity is who a verified token says its bearer is.
type Identity struct {
	User    string         // the token's sub, valid by protocol.ValidUser
	Name    string         // as other viewers see it, clean by protocol.CleanName
	Role    protocol.Role  // never empty
	Attrs   protocol.Attrs // of those that are configured
	Rooms   []string       // rooms the token is good for; empty: every room
	Guest   bool           // a viewer that this server named itself
	Expires time.Time
	Issued  time.Time // iat, zero when the token has none
	ID      string    // jti, else a digest of the token; "" before it is signed
}

// Everywhere reports whether the token is good for every room.
func (i Identity) Everywhere() bool { return i.Allows(AllRooms) }

// Allows reports whether the token is good for room.
func (i Identity) Allows(room string) bool {
	return len(i.Rooms) == 0 || slices.Contains(i.Rooms, AllRooms) || slices.Contains(i.Rooms, room)
}

// Speaks reports whether the bearer may speak for other users and read what no viewer sees: services and admins.
func (i Identity) Speaks() bool {
	return i.Role == protocol.RoleService || i.Role == protocol.RoleAdmin
}

// Moderates reports whether the bearer may moderate room and change its settings.
func (i Identity) Moderates(room string) bool {
	switch i.Role {
	case protocol.RoleAdmin, protocol.RoleHost, protocol.RoleModerator:
		return i.Allows(room)
	}
	return false
}

// Administers reports whether the bearer decides over the whole cluster: an admin whose token names no rooms, or all.
func (i Identity) Administers() bool {
	return i.Role == protocol.RoleAdmin && i.Everywhere()
}
