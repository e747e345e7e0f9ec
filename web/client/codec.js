// Frames to text and back. A client sends one object per frame; a server sends
// an array of events per frame, because it coalesces.

import { EVENTS, MAX_FRAME_BYTES, OPS } from "./codes.js";

const encoder = new TextEncoder();
const known = new Set(EVENTS);

/**
 * Encodes one operation. Fields that are undefined are left out.
 * @throws {TypeError} for an operation that does not exist or a frame the server would refuse by size.
 */
export function encode(op, fields = {}) {
  if (!OPS.includes(op)) throw new TypeError(`no such operation: ${op}`);
  const text = JSON.stringify({ op, ...fields });
  if (encoder.encode(text).length > MAX_FRAME_BYTES) throw new TypeError("frame too big");
  return text;
}

/**
 * Decodes one frame into its events. An event with a name this client does not
 * know is left out, so that an older page survives a newer server; a frame that
 * is no array of objects gives an empty list.
 */
export function decode(frame) {
  if (typeof frame !== "string") return [];
  let events;
  try {
    events = JSON.parse(frame);
  } catch {
    return [];
  }
  if (!Array.isArray(events)) return [];
  return events.filter((e) => e !== null && typeof e === "object" && known.has(e.ev));
}
