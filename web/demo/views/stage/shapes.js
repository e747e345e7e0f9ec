// Shapes the stage is made of. The caller has set fill and stroke styles.

import { last } from "../../models/older.js";

/** A canvas of its own to draw once and copy often. */
export function offscreen(width, height, draw) {
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, Math.round(width));
  canvas.height = Math.max(1, Math.round(height));
  draw(canvas.getContext("2d"), canvas.width, canvas.height);
  return canvas;
}

/** A limb: a capsule that tapers from radius r1 to r2. */
export function limb(ctx, x1, y1, r1, x2, y2, r2) {
  const a = Math.atan2(y2 - y1, x2 - x1) + Math.PI / 2;
  const c = Math.cos(a);
  const s = Math.sin(a);
  ctx.beginPath();
  ctx.arc(x1, y1, r1, 0, Math.PI * 2);
  ctx.fill();
  ctx.beginPath();
  ctx.arc(x2, y2, r2, 0, Math.PI * 2);
  ctx.fill();
  ctx.beginPath();
  ctx.moveTo(x1 + c * r1, y1 + s * r1);
  ctx.lineTo(x2 + c * r2, y2 + s * r2);
  ctx.lineTo(x2 - c * r2, y2 - s * r2);
  ctx.lineTo(x1 - c * r1, y1 - s * r1);
  ctx.fill();
}

/** A closed smooth outline through points: quadratic curves between their middles. */
export function blob(ctx, points) {
  const mid = (a, b) => [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2];
  ctx.beginPath();
  ctx.moveTo(...mid(last(points), points[0]));
  points.forEach((p, i) => ctx.quadraticCurveTo(p[0], p[1], ...mid(p, points[(i + 1) % points.length])));
  ctx.fill();
}

export function ellipse(ctx, x, y, rx, ry, turn = 0) {
  ctx.beginPath();
  ctx.ellipse(x, y, rx, ry, turn, 0, Math.PI * 2);
  ctx.fill();
}

/** A soft round light as a picture, `size` pixels wide. */
export function glow(color, size) {
  return offscreen(size, size, (ctx) => {
    const g = ctx.createRadialGradient(size / 2, size / 2, 0, size / 2, size / 2, size / 2);
    g.addColorStop(0, color);
    g.addColorStop(0.25, `${color}80`);
    g.addColorStop(1, `${color}00`);
    ctx.fillStyle = g;
    ctx.fillRect(0, 0, size, size);
  });
}
