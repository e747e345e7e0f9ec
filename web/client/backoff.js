// How long to wait before connecting again.

/**
 * Exponential with jitter: attempt n waits between half and all of
 * min(cap, base·2ⁿ), so that the sockets a server lost in one instant do not
 * return in one instant.
 */
export class Backoff {
  #baseMs;
  #capMs;
  #random;
  #attempt = 0;

  constructor({ baseMs = 500, capMs = 30_000, random = Math.random } = {}) {
    this.#baseMs = baseMs;
    this.#capMs = capMs;
    this.#random = random;
  }

  /** How many waits were handed out since the last reset. */
  get attempt() {
    return this.#attempt;
  }

  /** The next wait in milliseconds. */
  next() {
    const ceiling = Math.min(this.#capMs, this.#baseMs * 2 ** Math.min(this.#attempt, 30));
    this.#attempt += 1;
    return Math.round(ceiling * (0.5 + this.#random() / 2));
  }

  /**
   * The wait a server asked for: never earlier, and up to a tenth later, since
   * it may have told many the same.
   */
  asked(ms) {
    this.#attempt += 1;
    return Math.round(Math.max(0, ms) * (1 + this.#random() / 10));
  }

  reset() {
    this.#attempt = 0;
  }
}
