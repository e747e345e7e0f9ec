// Taps on the heart, folded: at most one request a second, each with 1 to 20.

import { MAX_LIKE_COUNT } from "../../client/codes.js";

export const EVERY_MS = 1000;

export class LikeFolder {
  #taps = 0;
  #sentAt = -Infinity;

  /** Counts a tap; says whether it will be sent: what a second holds beyond 20 only bubbles. */
  tap() {
    if (this.#taps >= MAX_LIKE_COUNT) return false;
    this.#taps += 1;
    return true;
  }

  /** How many to send at `now`: 0 when there is nothing or it is too early. */
  take(now) {
    if (this.#taps === 0 || now - this.#sentAt < EVERY_MS) return 0;
    const count = this.#taps;
    this.#taps = 0;
    this.#sentAt = now;
    return count;
  }

  /** Milliseconds until `take` would give something; null when nothing waits. */
  dueIn(now) {
    return this.#taps === 0 ? null : Math.max(0, this.#sentAt + EVERY_MS - now);
  }
}

/** The total shown: the server's, which never falls, and own taps until it has them. */
export class LikeTotal {
  #total = 0;

  get value() {
    return this.#total;
  }

  /** Takes a total; returns by how much it grew. */
  take(total) {
    const grew = Math.max(0, total - this.#total);
    this.#total += grew;
    return grew;
  }
}
