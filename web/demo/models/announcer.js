// What a screen reader hears of the chat: a flood read aloud would be noise, so
// it is told now and then how much came and what the last of it was.

/** Between two announcements. */
export const EVERY_MS = 6000;

export class Announcer {
  #count = 0;
  #last = null;
  #saidAt = -Infinity;

  message(entry) {
    this.#count += 1;
    this.#last = entry;
  }

  /** `{count, last}` when it is time to say something, else null. */
  take(now) {
    if (this.#count === 0 || now - this.#saidAt < EVERY_MS) return null;
    const said = { count: this.#count, last: this.#last };
    this.#count = 0;
    this.#saidAt = now;
    return said;
  }
}
