package link

import (
	"fmt"
	"net/url"
	"strings"

	"liveroom/protocol"
)

// Kind is what is said in a room: the last token of its subjects.
type Kind = string

// The kinds, besides the names of live classes. A gift, settings, an act and what is held are re-published by their streams.
const (
	KindGift     Kind = "gift"
	KindSettings Kind = "settings"
	KindLikes    Kind = "likes"
	KindSeen     Kind = "seen"
	KindHeld     Kind = "held"
	KindAct      Kind = "act"
)

// Subjects, and their beginnings.
const (
	roomPrefix           = "lr.room."
	GiftPrefix           = "lr.gift."
	IntentPrefix         = "lr.intent."
	LikesPrefix          = "lr.likes."
	AuditPrefix          = "lr.audit."
	ActPrefix            = "lr.act."
	LetterPrefix         = "lr.letter."
	ConsumerPrefix       = "lr.consumer."
	SaidPrefix           = "lr.said."
	HeldPrefix           = "lr.held."
	ShowPrefix           = "lr.show."
	ErasurePrefix        = "lr.erasure."
	ErasureNewsPrefix    = "lr.erasurenews."
	LikeLogSubject       = "lr.likelog"
	RulesSubject         = "lr.rules"
	RulesNewsSubject     = "lr.rulesnews"
	CatalogueSubject     = "lr.catalogue"
	CatalogueNewsSubject = "lr.cataloguenews"
	FilterSubject        = "lr.filter"
	FilterNewsSubject    = "lr.filternews"
	RevokedNewsPrefix    = "lr.revokednews."

	nodePrefix      = "lr.node."
	nodesPrefix     = "lr.nodes."
	PresenceSubject = nodePrefix + "*.presence"
	SamplesSubject  = nodePrefix + "*.samples"
	WhoSubject      = nodesPrefix + "who" // where a starting node asks who is there
)

// Streams and the buckets that are some of them.
const (
	GiftStream      = "liveroom_gifts"
	IntentStream    = "liveroom_intents"
	RecentStream    = "liveroom_recent"
	LikesStream     = "liveroom_likes"
	LikeLogStream   = "liveroom_likelog"
	RulesStream     = "liveroom_rules"
	CatalogueStream = "liveroom_catalogue"
	FilterStream    = "liveroom_filter"
	AuditStream     = "liveroom_audit"
	ActStream       = "liveroom_acts"
	LettersStream   = "liveroom_letters"
	ConsumersStream = "liveroom_consumers"
	EventsStream    = "liveroom_events"
	HeldStream      = "liveroom_held"
	ShowStream      = "liveroom_shows"
	ErasureStream   = "liveroom_erasures"
	SettingsBucket  = "liveroom_settings"
	NodesBucket     = "liveroom_nodes"
	ClusterBucket   = "liveroom_cluster"
	RevokedBucket   = "liveroom_revoked"
)

// BucketStream is the name of the stream that a bucket is.
func BucketStream(bucket string) string { return "KV_" + bucket }

// BucketPrefix begins the subjects of a bucket's keys.
func BucketPrefix(bucket string) string { return "$KV." + bucket + "." }

// RoomSubject escapes, so that no room can name another room's subject or a wildcard.
func RoomSubject(room string, kind Kind) string {
	return roomPrefix + protocol.Token(room) + "." + kind
}

// NodeSubject is where a node is spoken to; NodesSubject where all are.
func NodeSubject(node, verb string) string { return nodePrefix + protocol.Token(node) + "." + verb }
func NodesSubject(verb string) string      { return nodesPrefix + verb }

// LastToken of a subject; of those of rooms and keys that is a room's token, see [RoomOf].
func LastToken(subject string) string { return subject[strings.LastIndexByte(subject, '.')+1:] }

// RoomOf undoes [protocol.Token].
func RoomOf(token string) string {
	room, err := url.PathUnescape(strings.ReplaceAll(token, "=", "%"))
	if err != nil {
		return token // no token of ours
	}
	return room
}

// AnyRoomSubject is RoomSubject of rooms that a pattern of NATS stands for.
func AnyRoomSubject(pattern string, kind Kind) string { return roomPrefix + pattern + "." + kind }

// Seen is how far somebody has seen a room. It is said on the room's own subject, so that whoever is behind catches up
// on its feed's goroutine, in order with everything else.
type Seen struct {
	Gift     uint64 // sequence of the last gift
	Revision uint64 // of the settings
	Likes    int64  // the total
	Act      uint64 // number of the last act
}

// Append encodes it.
func (v Seen) Append(dst []byte) []byte {
	return fmt.Appendf(dst, "%d %d %d %d", v.Gift, v.Revision, v.Likes, v.Act)
}

// ParseSeen decodes it. A version that knew no acts said three numbers, and reads no more of them.
func ParseSeen(b []byte) (v Seen, ok bool) {
	n, _ := fmt.Sscanf(string(b), "%d %d %d %d", &v.Gift, &v.Revision, &v.Likes, &v.Act)
	return v, n >= 3
}

// Beyond reports whether v has something that other has not.
func (v Seen) Beyond(other Seen) bool {
	return v.Gift > other.Gift || v.Revision > other.Revision || v.Likes > other.Likes || v.Act > other.Act
}

// Stored is what a store has of a room.
type Stored struct {
	Seen
	Settings Record
	Acts     []protocol.StoredAct // in order
}
