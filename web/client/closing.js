// What a closed socket means for its client.

import { CLOSE_CODES } from "./codes.js";

const LONGEST_WAIT_MS = 10 * 60 * 1000;

/**
 * Reads a close code and its reason (compact JSON, or nothing).
 *
 * - `name`: the code's name, or "lost" for a connection that just ended
 * - `again`: "asked" (come back after `reconnectInMs`), "backoff", or "never" (not as you are)
 *
 * 4000–4099 come back; 4400–4499 not as you are. What broke the protocol
 * (1002, 1007 to 1009) would break it again, but the next frame need not, so it
 * backs off like a lost connection.
 */
export function readClose(code, reason = "") {
  const detail = parseReason(reason);
  const name = CLOSE_CODES[code] ?? (code >= 4400 && code <= 4499 ? "refused" : "lost");
  const reconnectInMs = waitOf(detail.reconnect_in_ms);
  if (code >= 4400 && code <= 4499) return { code, name, again: "never", reconnectInMs: 0, detail };
  const again = reconnectInMs === null ? "backoff" : "asked";
  return { code, name, again, reconnectInMs: reconnectInMs ?? 0, detail };
}

function parseReason(reason) {
  try {
    const detail = JSON.parse(reason);
    return detail !== null && typeof detail === "object" && !Array.isArray(detail) ? detail : {};
  } catch {
    return {};
  }
}

function waitOf(ms) {
  if (typeof ms !== "number" || !Number.isFinite(ms) || ms < 0) return null;
  return Math.min(ms, LONGEST_WAIT_MS);
}
