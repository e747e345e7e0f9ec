// The chat of a room: what stands in the list, and what becomes of own words.
//
// An own message is pending from the moment it is sent, then sent, hidden (only
// its sender sees it) or failed. Ack and event arrive in either order and name
// the same mid, so while an own message is pending, events of the own user wait
// until the ack says which of them is it.

/** Entries kept; the reader scrolls no further back. */
export const CAPACITY = 200;

export class Messages {
  #capacity;
  #self = null;
  #nextKey = 1;
  #entries = [];
  #pending = new Map();
  #unclaimed = new Map();
  // What the view has not drawn yet.
  #added = [];
  #changed = new Set();
  #removed = [];

  constructor(capacity = CAPACITY) {
    this.#capacity = capacity;
  }

  /** The id of the own user, known from the welcome on. */
  set self(id) {
    this.#self = id;
  }

  get entries() {
    return this.#entries;
  }

  /** Shows an own message at once, under the client id it travels with. */
  send(clientId, message) {
    const entry = this.#add({ ...message, kind: "chat", own: true, status: "pending", clientId });
    this.#pending.set(clientId, entry);
    return entry;
  }

  /** Takes the answer to an own message; returns its entry, or null for an id that is none. */
  answer(clientId, ack) {
    const entry = this.#pending.get(clientId);
    if (!entry) return null;
    this.#pending.delete(clientId);
    entry.answer = ack;
    entry.status = ack.code === 200 ? "sent" : ack.reason === "held" ? "held" : ack.code === 202 ? "hidden" : "failed";
    if (ack.mid !== undefined) {
      entry.mid = ack.mid;
      entry.ts = ack.ts;
      this.#unclaimed.delete(ack.mid);
    }
    this.#changed.add(entry);
    if (this.#pending.size === 0) this.#releaseUnclaimed();
    return entry;
  }

  /** Takes a danmaku event. Returns the entry that is new in the list, or null. */
  danmaku(event) {
    const own = event.user?.id !== undefined && event.user.id === this.#self;
    if (own && event.released && this.decide(event.mid, "sent")) return null;
    if (own && this.#entries.some((e) => e.mid === event.mid)) return null;
    if (own && this.#pending.size > 0) {
      this.#unclaimed.set(event.mid, event);
      return null;
    }
    return this.#addEvent(event, own);
  }

  /** What became of an own message that was held: `sent` or `dropped`. Returns its entry, or null for none that waits. */
  decide(mid, status) {
    const entry = this.#entries.find((e) => e.mid === mid && e.status === "held");
    if (!entry) return null;
    entry.status = status;
    this.#changed.add(entry);
    return entry;
  }

  /** Gives a message that was deleted its words back, where it still stands. */
  restore({ mid, text }) {
    const entry = this.#entries.find((e) => e.mid === mid);
    if (!entry) return;
    Object.assign(entry, { deleted: false, text });
    this.#changed.add(entry);
  }

  /** A line that is no chat: a gift, a notice. */
  note(entry) {
    return this.#add(entry);
  }

  /** Changes an entry while it is among the last `within`; says whether it was. */
  update(entry, fields, within = 40) {
    if (this.#entries.lastIndexOf(entry) < this.#entries.length - within || !this.#entries.includes(entry)) return false;
    Object.assign(entry, fields);
    this.#changed.add(entry);
    return true;
  }

  /** Takes the words out of a message that was deleted. */
  remove(mid) {
    this.#unclaimed.delete(mid);
    const entry = this.#entries.find((e) => e.mid === mid);
    if (!entry) return;
    entry.deleted = true;
    this.#changed.add(entry);
  }

  /**
   * Takes the words out of all that somebody said within a time, and returns the ids of those messages. Gifts and what others answered then stay
   * without the name.
   */
  erase({ user, from, until }) {
    for (const e of this.#entries) {
      if (!(e.ts >= from && e.ts <= until)) continue;
      const replyTo = e.replyTo?.id === user.id;
      if (!replyTo && !(e.kind === "gift" && e.user?.id === user.id)) continue;
      Object.assign(e, replyTo ? { replyTo: { id: user.id } } : { user: { id: user.id } });
      this.#changed.add(e);
    }
    const theirs = this.#entries.filter((e) => e.mid && e.kind === "chat" && !e.deleted && e.user?.id === user.id && e.ts >= from && e.ts <= until).map((e) => e.mid);
    for (const mid of theirs) this.remove(mid);
    return theirs;
  }

  /** Takes a failed message out of the list, for it to be sent anew. */
  discard(key) {
    const at = this.#entries.findIndex((e) => e.key === key);
    if (at >= 0) this.#drop(at);
  }

  /** Whether an own message waits to be drawn, or to be drawn anew. */
  get hasOwnUndrawn() {
    return this.#added.some((e) => e.own) || [...this.#changed].some((e) => e.own);
  }

  /** What changed since the last call: entries added (in order), changed, and removed. */
  take() {
    const added = this.#added;
    const changed = [...this.#changed].filter((e) => !added.includes(e));
    const removed = this.#removed;
    this.#added = [];
    this.#changed = new Set();
    this.#removed = [];
    return { added, changed, removed };
  }

  #releaseUnclaimed() {
    for (const event of this.#unclaimed.values()) this.#addEvent(event, true);
    this.#unclaimed.clear();
  }

  #addEvent(event, own) {
    return this.#add({
      kind: "chat", own, status: "sent", mid: event.mid, user: event.user,
      text: event.text, color: event.color, mode: event.mode, ts: event.ts, replyTo: event.reply_to,
    }, event.released === true);
  }

  /** Puts an entry at the end; one that was released late, where its time is (`before`: the key of the next one). */
  #add(entry, released = false) {
    entry.key = this.#nextKey++;
    const at = released ? this.#entries.findIndex((e) => e.ts > entry.ts) : -1;
    if (at >= 0) {
      entry.before = this.#entries[at].key;
      this.#entries.splice(at, 0, entry);
    } else this.#entries.push(entry);
    this.#added.push(entry);
    if (this.#entries.length > this.#capacity) this.#drop(0);
    return entry;
  }

  #drop(at) {
    const [entry] = this.#entries.splice(at, 1);
    const undrawn = this.#added.indexOf(entry);
    if (undrawn >= 0) this.#added.splice(undrawn, 1);
    else this.#removed.push(entry);
    this.#changed.delete(entry);
  }
}
