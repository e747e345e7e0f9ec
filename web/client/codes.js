// The vocabulary of liveroom.v1: one list for Go, the documents and this
// client. A test of the server compares these with its package protocol, so a
// name is added here and there in the same commit.

/** Offered at the handshake; a server that does not know it refuses with 400. */
export const SUBPROTOCOL = "liveroom.v1";

/** The kinds of messages: operations, events and limited actions are called after them. */
export const KINDS = ["danmaku", "gift", "like"];

/** What a client may send besides. */
export const OPS = ["hello", "refresh", "ping", "moderate"].concat(KINDS);

/** What a server may send besides. */
export const EVENTS = [
  "welcome", "ack", "online", "room", "deleted", "restored", "erased", "muted", "role", "announce", "missed", "custom", "gifts", "held", "error", "pong",
].concat(KINDS);

export const MODES = ["scroll", "top", "bottom"];

export const ROLES = ["viewer", "host", "moderator", "service", "admin"];

export const ACTIONS = [
  "mute", "unmute", "ban", "unban", "kick", "delete", "appoint", "dismiss", "allow", "disallow", "settings",
  "slow_mode", "pin", "unpin", "announce", "close", "open", "undo", "release", "drop", "cleanup",
];

/** The reasons of acks, errors and HTTP answers, by their code; 200 has none. */
export const REASONS = {
  bad_request: 400,
  too_long: 400,
  unauthenticated: 401,
  insufficient_funds: 402,
  declined: 402,
  forbidden: 403,
  gifts_by_backend: 403,
  rejected: 403,
  muted: 403,
  banned: 403,
  network_banned: 403,
  members_only: 403,
  followers_only: 403,
  staff_only: 403,
  emoji_only: 403,
  links_off: 403,
  filtered: 403,
  not_found: 404,
  conflict: 409,
  list_full: 409,
  decided: 409,
  room_closed: 409,
  rate_limited: 429,
  slow_mode: 429,
  repeated_text: 429,
  internal: 500,
  unavailable: 503,
  try_later: 503,
  room_busy: 202,
  folded: 202,
  here_only: 202,
  held: 202,
};

export const SCOPES = ["conn", "user", "user_room", "room", "ip", "net", "net_room", "global", "key"];

/** What a 503 on a gift means: nothing happened, or nobody knows (send the same id again). */
export const OUTCOMES = ["refused", "unknown"];

/** Close codes the server sends, with the word that stands in their reason. */
export const CLOSE_CODES = {
  1000: "bye",
  1001: "drain",
  1002: "protocol_error",
  1007: "invalid_utf8",
  1008: "not_text",
  1009: "too_big",
  1011: "internal",
  4001: "slow_consumer",
  4002: "hello",
  4003: "overloaded",
  4004: "kicked",
  4005: "abuse",
  4401: "token",
  4403: "forbidden",
  4404: "no_such_room",
};

/** A like counts 1 to this many taps. */
export const MAX_LIKE_COUNT = 20;

/** Of one gift in one request. */
export const MAX_GIFT_COUNT = 9999;

/** Bytes of one frame to the server. */
export const MAX_FRAME_BYTES = 16 * 1024;

export const ROOM_PATTERN = /^[A-Za-z0-9_-]{1,64}$/;
export const ID_PATTERN = /^[A-Za-z0-9_.:@-]{1,64}$/;
