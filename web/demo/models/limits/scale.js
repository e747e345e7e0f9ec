// Where points of a chart lie.

import { last } from "../older.js";

/** The smallest of 1, 2, 5 × 10^n that is not below `value`, and not below `floor`. */
export function niceTop(value, floor = 1) {
  const v = Math.max(value, floor);
  const power = 10 ** Math.floor(Math.log10(v));
  const step = [1, 2, 5, 10].find((s) => s * power >= v * 0.999999);
  return step * power;
}

/**
 * One scale for what is drawn above an axis and what below it: `{middle, above, below}` in pixels of a picture of `height`,
 * for values up to `up` and `down`. What is not nothing is seen.
 */
export function split(up, down, height, edge = 2) {
  const top = up + down > 0 ? up : 1; // nothing at all: the axis is the ground
  const unit = (height - 2 * edge) / (top + down);
  const middle = edge + top * unit;
  const far = (v) => (v > 0 ? Math.max(1, v * unit) : 0);
  return { middle, above: (v) => middle - far(v), below: (v) => middle + far(v) };
}

const TICKS_MS = [15_000, 30_000, 60_000, 120_000, 300_000];

/** Round instants of the clock within a window, `most` of them at most. */
export function timeTicks({ from, to }, most = 6) {
  const step = TICKS_MS.find((ms) => (to - from) / ms <= most) ?? last(TICKS_MS);
  const ticks = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) ticks.push(at);
  return { step, ticks };
}

/** A path along `[x, y]` pairs, closed down to `base` when given. */
export function path(run, base = null) {
  if (run.length === 0) return "";
  const line = run.map(([x, y], i) => `${i === 0 ? "M" : "L"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
  return base === null ? line : `${line}L${last(run)[0].toFixed(1)} ${base}L${run[0][0].toFixed(1)} ${base}Z`;
}

/** The point nearest to an instant; null when there is none. */
export function nearest(points, at) {
  let best = null;
  for (const point of points) {
    if (best === null || Math.abs(point.at - at) < Math.abs(best.at - at)) best = point;
  }
  return best;
}
