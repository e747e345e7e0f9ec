// Where points of a chart lie.

import { last } from "../older.js";

/** The smallest of 1, 2, 5 × 10^n that is not below `value`, and not below `floor`. */
export function niceTop(value, floor = 1) {
  const v = Math.max(value, floor);
  const power = 10 ** Math.floor(Math.log10(v));
  const step = [1, 2, 5, 10].find((s) => s * power >= v * 0.999999);
  return step * power;
}

/** Curves in runs without gaps: each an array of `[x, y]` by the functions given. */
export function runs(points, x, y) {
  const out = [];
  for (const [i, point] of points.entries()) {
    if (i === 0 || point.broken) out.push([]);
    last(out).push([x(point), y(point)]);
  }
  return out.filter((run) => run.length > 0);
}

/** A path along the points of a run, closed down to `base` when given. */
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
