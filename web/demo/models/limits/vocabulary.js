// What a rule may say. package limit checks the same words.

import { KINDS } from "../../../client/codes.js";

export const ACTIONS = KINDS.concat("join", "connect", "frame", "api", "event");
/** Slots of these are those who are there: one count, however many. */
export const LASTING = ["join", "connect"];
export const SCOPES = ["conn", "user", "user_room", "room", "ip", "net", "net_room", "key", "global"];
export const ALGORITHMS = ["token_bucket", "leaky_bucket", "fixed_window", "sliding_window", "sliding_log", "concurrency"];
export const WINDOWS = ["fixed_window", "sliding_window", "sliding_log"];
export const COSTS = ["1", "value", "count"];
export const OUTAGES = ["share", "open", "closed"];
export const ROLES = ["viewer", "host", "moderator", "service", "admin"];

export const MAX = Object.freeze({
  rate: 1_000_000_000,
  burst: 1_000_000_000_000,
  perMs: 366 * 86_400_000,
  times: 1000,
  slots: 1000,
  rules: 1000,
  noteBytes: 500,
});
