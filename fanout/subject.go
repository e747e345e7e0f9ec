package fanout

import "liveroom/protocol"

// The last token of a room's subjects, besides the names of live classes.
const (
	kindGift     = "gift"
	kindSettings = "settings"
	kindLikes    = "likes"
	kindSeen     = "seen"
)

const (
	roomPrefix     = "lr.room."
	giftPrefix     = "lr.gift."
	likesPrefix    = "lr.likes."
	nodePrefix     = "lr.node."
	likeLogSubject = "lr.likelog"

	rulesSubject     = "lr.rules"
	rulesNewsSubject = "lr.rulesnews"

	revokedNewsPrefix = "lr.revokednews."
)

// roomSubject escapes, so that no room can name another room's subject or a wildcard.
func roomSubject(room, kind string) string { return roomPrefix + protocol.Token(room) + "." + kind }

func giftSubject(room string) string  { return giftPrefix + protocol.Token(room) }
func likesSubject(room string) string { return likesPrefix + protocol.Token(room) }

func settingsSubject(room string) string {
	return "$KV." + settingsBucket + "." + protocol.Token(room)
}

func presenceSubject(node string) string { return nodePrefix + protocol.Token(node) + ".presence" }

// wholeSubject is where a node is asked to announce all of its rooms.
func wholeSubject(node string) string { return nodePrefix + protocol.Token(node) + ".whole" }

// whoSubject is where a starting node asks who is there.
const whoSubject = "lr.nodes.who"

func probeSubject(node, connection string) string {
	return nodePrefix + protocol.Token(node) + ".probe." + connection
}

// giftID is the gift's idempotency key. "/" is no byte of a token, so the three parts cannot run into each other.
func giftID(room, user, id string) string {
	return protocol.Token(room) + "/" + protocol.Token(user) + "/" + protocol.Token(id)
}
