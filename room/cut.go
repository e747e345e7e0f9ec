package room

import "liveroom/protocol"

// Cut closes the sessions on this node whose identity matches, with the reason given, and returns how many there were.
// match must not block and must not call the hub.
func (h *Hub) Cut(match func(*Identity) bool, why protocol.Refusal) int {
	n := 0
	for _, r := range h.opened() {
		var found []*Member
		r.mu.Lock()
		for _, s := range r.audience.shards {
			for _, m := range s.members {
				if match(m.who.Load()) {
					found = append(found, m)
				}
			}
		}
		r.mu.Unlock()
		for _, m := range found {
			m.session.Close(why)
		}
		n += len(found)
	}
	return n
}
