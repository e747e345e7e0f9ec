// How lively the room is, from 0 to 1: what makes the drawn stage move.

/** After this long half of the liveliness is gone. */
const HALF_LIFE_MS = 2500;

const WEIGHTS = { danmaku: 0.035, like: 0.004, gift: 0.16 };

export class Energy {
  #level = 0;
  #at = 0;

  add(kind, count, now) {
    const level = this.at(now);
    const push = WEIGHTS[kind] * Math.min(count, 50);
    this.#level = level + (1 - level) * Math.min(1, push);
    this.#at = now;
  }

  at(now) {
    return this.#level * 0.5 ** (Math.max(0, now - this.#at) / HALF_LIFE_MS);
  }
}
