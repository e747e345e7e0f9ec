// How often and how fine the stage is drawn, so that a slow machine keeps its
// time for the chat. What is measured is lateness: frames that come later than
// asked for mean that the machine is busy, with this or with anything else.

const LEVELS = [
  { everyMs: 1000 / 30, scale: 1 },
  { everyMs: 1000 / 20, scale: 0.85 },
  { everyMs: 1000 / 12, scale: 0.75 },
  { everyMs: 1000 / 5, scale: 0.7 },
];
/** Frames that a verdict is founded on. */
const SAMPLE = 20;
const LATE = 1.7;
const IN_TIME = 1.25;
/** Good verdicts in a row before the next finer level; doubled each time it turns out too much. */
const PATIENCE = 12;
/** A longer gap is a hidden tab or a breakpoint, and says nothing. */
const GAP_MS = 5000;

export class Pace {
  #level = 0;
  #lastAt = null;
  #frames = 0;
  #spentMs = 0;
  #good = 0;
  #patience = PATIENCE;

  get everyMs() {
    return LEVELS[this.#level].everyMs;
  }

  /** The share of the full resolution. */
  get scale() {
    return LEVELS[this.#level].scale;
  }

  /** Whether a frame is due. A display's frame rarely falls on the instant, hence the slack. */
  due(now) {
    return this.#lastAt === null || now - this.#lastAt >= this.everyMs - 3;
  }

  /** A frame is drawn; says whether the level has changed. */
  drawn(now) {
    const gap = this.#lastAt === null ? 0 : now - this.#lastAt;
    this.#lastAt = now;
    if (gap <= 0 || gap > GAP_MS) return false;
    this.#frames += 1;
    this.#spentMs += gap;
    if (this.#frames < SAMPLE) return false;
    const lateness = this.#spentMs / this.#frames / this.everyMs;
    this.#frames = 0;
    this.#spentMs = 0;
    return this.#judge(lateness);
  }

  #judge(lateness) {
    if (lateness > LATE && this.#level < LEVELS.length - 1) {
      this.#level += 1;
      this.#good = 0;
      this.#patience = Math.min(this.#patience * 2, 1000);
      return true;
    }
    this.#good = lateness < IN_TIME ? this.#good + 1 : 0;
    if (this.#good < this.#patience || this.#level === 0) return false;
    this.#level -= 1;
    this.#good = 0;
    return true;
  }
}
