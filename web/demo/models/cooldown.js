// The wait between two messages, for the ring around the send button.

export class Cooldown {
  #from = 0;
  #until = 0;
  #cause = null;

  /**
   * Starts a wait of `ms` from `now` with the refusal that explains it. A longer
   * wait that is under way stays.
   */
  start(ms, now, cause) {
    if (!(ms > 0) || now + ms < this.#until) return;
    this.#from = now;
    this.#until = now + ms;
    this.#cause = cause;
  }

  end() {
    this.#until = 0;
    this.#cause = null;
  }

  /** `{active, leftMs, fraction, cause}`; the fraction falls from 1 to 0. */
  at(now) {
    const leftMs = Math.max(0, this.#until - now);
    if (leftMs === 0) return { active: false, leftMs: 0, fraction: 0, cause: null };
    return { active: true, leftMs, fraction: leftMs / (this.#until - this.#from), cause: this.#cause };
  }
}
