package protocol

// Code is the status of an answer, with the meaning HTTP gives it.
type Code int

// The codes an ack or an HTTP answer can carry.
const (
	OK              Code = 200 // admitted
	Degraded        Code = 202 // accepted, with less effect: own echo only, or counted in part
	BadRequest      Code = 400
	Unauthenticated Code = 401
	Unpaid          Code = 402
	Forbidden       Code = 403
	NotFound        Code = 404
	Conflict        Code = 409
	TooMany         Code = 429
	Internal        Code = 500
	Unavailable     Code = 503
)

// Reason says in one word why an answer is not a plain 200. It is for programs; [Message] is for people.
type Reason string

// Reasons, in the order of [Reasons].
const (
	ReasonBadRequest      Reason = "bad_request"
	ReasonTooLong         Reason = "too_long"
	ReasonUnauthenticated Reason = "unauthenticated"
	ReasonFunds           Reason = "insufficient_funds"
	ReasonDeclined        Reason = "declined"
	ReasonForbidden       Reason = "forbidden"
	ReasonByBackend       Reason = "gifts_by_backend"
	ReasonRejected        Reason = "rejected"
	ReasonMuted           Reason = "muted"
	ReasonBanned          Reason = "banned"
	ReasonNetworkBanned   Reason = "network_banned"
	ReasonMembersOnly     Reason = "members_only"
	ReasonFollowersOnly   Reason = "followers_only"
	ReasonStaffOnly       Reason = "staff_only"
	ReasonEmojiOnly       Reason = "emoji_only"
	ReasonLinksOff        Reason = "links_off"
	ReasonFiltered        Reason = "filtered"
	ReasonNotFound        Reason = "not_found"
	ReasonConflict        Reason = "conflict"
	ReasonListFull        Reason = "list_full"
	ReasonDecided         Reason = "decided"
	ReasonRoomClosed      Reason = "room_closed"
	ReasonRateLimited     Reason = "rate_limited"
	ReasonSlowMode        Reason = "slow_mode"
	ReasonRepeatedText    Reason = "repeated_text"
	ReasonInternal        Reason = "internal"
	ReasonUnavailable     Reason = "unavailable"
	ReasonTryLater        Reason = "try_later"
	ReasonRoomBusy        Reason = "room_busy"
	ReasonFolded          Reason = "folded"
	ReasonHereOnly        Reason = "here_only"
	ReasonHeld            Reason = "held"
)

// codeOf is the one table from reason to code.
var codeOf = map[Reason]Code{
	ReasonBadRequest: BadRequest, ReasonTooLong: BadRequest,
	ReasonUnauthenticated: Unauthenticated,
	ReasonFunds:           Unpaid, ReasonDeclined: Unpaid,
	ReasonForbidden: Forbidden, ReasonByBackend: Forbidden, ReasonRejected: Forbidden, ReasonMuted: Forbidden, ReasonBanned: Forbidden,
	ReasonNetworkBanned: Forbidden, ReasonMembersOnly: Forbidden, ReasonFollowersOnly: Forbidden, ReasonStaffOnly: Forbidden, ReasonEmojiOnly: Forbidden, ReasonLinksOff: Forbidden, ReasonFiltered: Forbidden,
	ReasonNotFound: NotFound,
	ReasonConflict: Conflict, ReasonListFull: Conflict, ReasonDecided: Conflict, ReasonRoomClosed: Conflict,
	ReasonRateLimited: TooMany, ReasonSlowMode: TooMany, ReasonRepeatedText: TooMany,
	ReasonInternal:    Internal,
	ReasonUnavailable: Unavailable, ReasonTryLater: Unavailable,
	ReasonRoomBusy: Degraded, ReasonFolded: Degraded, ReasonHereOnly: Degraded, ReasonHeld: Degraded,
}

// Code returns the status that goes with the reason; [Internal] for a reason that is not in the table.
func (r Reason) Code() Code {
	if c, ok := codeOf[r]; ok {
		return c
	}
	return Internal
}

// Reasons lists every reason, in the order of the documentation.
func Reasons() []Reason {
	return []Reason{
		ReasonBadRequest, ReasonTooLong, ReasonUnauthenticated, ReasonFunds, ReasonDeclined, ReasonForbidden, ReasonByBackend, ReasonRejected, ReasonMuted, ReasonBanned,
		ReasonNetworkBanned, ReasonMembersOnly, ReasonFollowersOnly, ReasonStaffOnly, ReasonEmojiOnly, ReasonLinksOff, ReasonFiltered,
		ReasonNotFound, ReasonConflict, ReasonListFull, ReasonDecided, ReasonRoomClosed, ReasonRateLimited, ReasonSlowMode, ReasonRepeatedText,
		ReasonInternal, ReasonUnavailable, ReasonTryLater, ReasonRoomBusy, ReasonFolded, ReasonHereOnly, ReasonHeld,
	}
}

// Outcome tells the sender of a refused gift whether anything happened.
type Outcome string

// Outcomes of a gift answered with 503.
const (
	OutcomeRefused Outcome = "refused" // nothing happened
	OutcomeUnknown Outcome = "unknown" // send the same id again within gift_retry_ms
)
