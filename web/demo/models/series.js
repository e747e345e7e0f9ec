// The last values of a number, for a small curve.

import { last } from "./older.js";

/** A steady curve must not run along the upper edge. */
const HEADROOM = 1.25;

export class Series {
  #capacity;
  #values = [];

  constructor(capacity = 60) {
    this.#capacity = capacity;
  }

  push(value) {
    this.#values.push(Number.isFinite(value) ? value : 0);
    if (this.#values.length > this.#capacity) this.#values.shift();
  }

  /** Puts the last of these in place of what was there. */
  fill(values) {
    this.#values = [];
    for (const value of values) this.push(value);
  }

  get values() {
    return this.#values;
  }

  get last() {
    return last(this.#values) ?? 0;
  }

  /**
   * The curve as points of a polyline over the width of a box, newest at the
   * right edge; an empty string for fewer than two values.
   */
  points(width, height, { floor = 1 } = {}) {
    const values = this.#values;
    if (values.length < 2) return "";
    const top = Math.max(floor, ...values) * HEADROOM;
    const step = width / (values.length - 1);
    return values
      .map((v, i) => `${(i * step).toFixed(1)},${(height - (Math.max(0, v) / top) * height).toFixed(1)}`)
      .join(" ");
  }
}
