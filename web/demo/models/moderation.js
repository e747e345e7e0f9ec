// Who may do what to whom, as docs/protocol.md has it, and what can still be undone.

const RANKS = { viewer: 0, moderator: 1, host: 2, admin: 3 };

/** null for a service, which moderates nothing and is moderated by nobody. */
function rank(role) {
  return RANKS[role ?? "viewer"] ?? null;
}

export function isStaff(role) {
  return rank(role) > 0;
}

function outranks(role, other) {
  return rank(role) !== null && rank(other) !== null && rank(role) > rank(other);
}

/** Offered at once; any other time is asked for. */
export const MUTE_SECONDS = [60, 600, 86_400];
export const BAN_SECONDS = [600, 86_400, 0];
/** 30 days. */
export const LONGEST_SECONDS = 2_592_000;

/**
 * What `me` (`{id, role}`) may do with an entry of the list: acts in the order in
 * which they are offered. An entry without a `mid` is somebody, and no message.
 */
export function actsOn(me, { user, mid, deleted, kind = "chat" }) {
  if (!me || !user?.id) return [];
  const own = user.id === me.id;
  const said = kind === "chat" && mid !== undefined && !deleted;
  const acts = said ? ["reply"] : [];
  if (!isStaff(me.role)) return acts;
  const below = !own && outranks(me.role, user.role);
  if (said && (own || below)) acts.push("delete");
  if (said) acts.push("pin");
  if (below) acts.push("mute", "ban", "kick", "cleanup");
  if (below && rank(me.role) >= RANKS.host) acts.push(user.role === "moderator" ? "dismiss" : "appoint");
  acts.push("who");
  return acts;
}

/** How long an act is offered to be undone where it was made; the audit offers it for longer. */
export const UNDO_MS = 10_000;

/** What can't be taken back. */
const FINAL = ["kick", "cleanup", "announce", "release", "drop", "undo"];

export function isFinal(action) {
  return FINAL.includes(action);
}

/** Whether an entry of the audit can be asked to be undone; what was undone since is in `undone`. */
export function canUndo(entry, undone) {
  return !isFinal(entry.action) && entry.was !== undefined && !undone.has(entry.seq);
}

/** The entries that others took back. */
export function undoneOf(entries) {
  return new Set(entries.map((e) => e.undoes).filter((seq) => seq !== undefined));
}

/** The fields of a mute or a ban from what a form holds: `{seconds, reason, network}`; `fault` names what is wrong. */
export function readSanction({ amount, unit, reason, network }) {
  const seconds = unit === 0 ? 0 : Number(amount) * unit;
  if (unit !== 0 && (!Number.isInteger(Number(amount)) || seconds < 1)) return { fault: "amount" };
  if (seconds > LONGEST_SECONDS) return { fault: "long" };
  const said = reason.trim();
  return { fields: { seconds, ...(said ? { reason: said } : {}), ...(network ? { network: true } : {}) } };
}

/** Held messages as staff sees them: what waits, in the order in which it was held, and what became of the last ones. */
export class Held {
  #byMid = new Map();

  constructor(keep = 200) {
    this.keep = keep;
  }

  /** Takes an event or an entry of the list; returns whether it changed something. */
  take(held) {
    const was = this.#byMid.get(held.mid);
    if (was && was.state !== "waiting" && held.state === "waiting") return false; // the list is older than the event
    this.#byMid.set(held.mid, { ...was, ...held });
    if (this.#byMid.size > this.keep) this.#byMid.delete(this.#byMid.keys().next().value);
    return true;
  }

  get waiting() {
    return [...this.#byMid.values()].filter((h) => h.state === "waiting");
  }

  /** The newest first. */
  get decided() {
    return [...this.#byMid.values()].filter((h) => h.state !== "waiting").reverse();
  }
}
