// Whether a list follows its end, and how many messages came while it did not.

/** Pixels from the end that still count as being there. */
const NEAR = 48;

export class Follow {
  #following = true;
  #unread = 0;

  get following() {
    return this.#following;
  }

  get unread() {
    return this.#unread;
  }

  /** The reader scrolled: is the end in sight? */
  scrolled(distanceToEnd) {
    this.#following = distanceToEnd <= NEAR;
    if (this.#following) this.#unread = 0;
  }

  /** New messages came. */
  came(count) {
    if (!this.#following) this.#unread += count;
  }

  /** The reader asked for the end. */
  toEnd() {
    this.#following = true;
    this.#unread = 0;
  }
}
