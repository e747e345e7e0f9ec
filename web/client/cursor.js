// Where a viewer is in a room: what it has seen, and where to go on.

/** Mids remembered for dropping what comes twice; a resume overlaps by far less. */
const MEMORY = 2000;

export class Cursor {
  #gift = null;
  #ledger;
  #chat = null;
  #last;
  #seen = new Set();
  #older = new Set();

  /** The value of hello's `resume`, or undefined before the first welcome. */
  get resume() {
    if (this.#gift === null && this.#chat === null) return undefined;
    return { gift: this.#gift ?? 0, ledger: this.#ledger, chat: this.#chat ?? 0, last: this.#last };
  }

  /**
   * Takes a welcome. After a recovered resume the own position stands, because
   * what was missed is still to come; otherwise the server's is the new start.
   */
  welcome(event, resumed) {
    const at = event.cursor ?? {};
    const recovered = event.recovered ?? {};
    if (!resumed || recovered.gift === false || this.#gift === null) this.#gift = numberOr(at.gift, 0);
    // Another ledger, or an older one, gives its gifts mids that are known from the one before.
    if (resumed && (recovered.gift === false || at.ledger !== this.#ledger)) this.#forgetGifts();
    this.#ledger = at.ledger;
    this.#chat = Math.max(this.#chat ?? 0, numberOr(at.chat, 0));
    this.#last = at.last ?? this.#last;
  }

  #forgetGifts() {
    for (const set of [this.#seen, this.#older]) {
      for (const mid of set) if (/^g\d+$/.test(mid)) set.delete(mid);
    }
  }

  /** Says whether a mid is new, and remembers it. An event without mid is always new. */
  fresh(mid) {
    if (mid === undefined) return true;
    if (this.#seen.has(mid) || this.#older.has(mid)) return false;
    this.#seen.add(mid);
    if (this.#seen.size >= MEMORY / 2) {
      this.#older = this.#seen;
      this.#seen = new Set();
    }
    return true;
  }

  /** Moves on with a danmaku, but not with one that nobody else was shown. */
  danmaku(event) {
    if (event.hidden) return;
    this.#last = event.mid;
    this.#chat = Math.max(this.#chat ?? 0, numberOr(event.ts, 0));
  }

  /**
   * Moves on with a gift. Returns the hole before it, `{after, before}` with
   * both sequences exclusive, or null: each gift names the one before it in its
   * room, so a missing one is seen at once.
   */
  gift(event) {
    const before = this.#gift;
    const prev = numberOr(event.prev, null);
    this.#gift = Math.max(before ?? 0, numberOr(event.seq, 0));
    if (before === null || prev === null || prev <= before) return null;
    return { after: before, before: event.seq };
  }
}

function numberOr(value, otherwise) {
  return typeof value === "number" && Number.isFinite(value) ? value : otherwise;
}
