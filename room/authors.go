package room

import (
	"bytes"

	"liveroom/protocol"
)

// maxAuthored bounds the messages of hosts, moderators and admins whose author a room still knows when its history has
// forgotten them: viewers go on seeing them, and a moderator may not delete them.
const maxAuthored = 256

// authors are who said a room's newest messages of more than viewers, the oldest first. Guarded by Room.mu.
type authors []authored

type authored struct {
	mid  string
	user string
	role protocol.Role
}

// roleField is in the event of whoever is no viewer, and in no text, where its quotes are escaped.
var roleField = []byte(`,"role":"`)

// note remembers who said a danmaku, unless a viewer did.
func (a *authors) note(event []byte) {
	if !bytes.Contains(event, roleField) {
		return
	}
	user, role, ok := protocol.EventAuthor(event)
	if !ok {
		return
	}
	*a = append((*a)[max(len(*a)-maxAuthored+1, 0):], authored{protocol.EventMID(event), user, role})
}

// author tells who said a danmaku, and in which role; false where nobody knows any more, and then a viewer did.
func (r *Room) author(mid string) (user string, role protocol.Role, known bool) {
	if user, role, known = protocol.EventAuthor(r.find(mid)); known {
		return user, role, true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.authors {
		if a.mid == mid {
			return a.user, a.role, true
		}
	}
	return "", protocol.RoleViewer, false
}
