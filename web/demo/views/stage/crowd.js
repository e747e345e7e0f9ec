// The crowd at the foot of the picture: the livelier the room, the more arms
// and lights go up.

import { ellipse, glow, limb } from "./shapes.js";

/** From back to front: nearer is larger and darker. `lit` is how much of the stage's light reaches the tops. */
const ROWS = [
  { y: 0.915, head: 0.0165, color: "#14121c", lit: 0.42 },
  { y: 0.965, head: 0.0215, color: "#0b0a11", lit: 0.24 },
  { y: 1.03, head: 0.029, color: "#040406", lit: 0.12 },
];

export class Crowd {
  #people;
  #colors;
  #glows;
  #tops;

  constructor({ crowd, palette }, height) {
    this.#people = crowd;
    this.#colors = [...palette.lights, palette.disc];
    this.#glows = this.#colors.map((color) => glow(color, Math.round(height * 0.1)));
    this.#tops = ROWS.map(({ lit, color }) => mix(color, palette.sky[3], lit));
  }

  draw(ctx, w, h, t, energy) {
    for (const person of this.#people) this.#drawPerson(ctx, person, w, h, t, energy);
  }

  #drawPerson(ctx, p, w, h, t, energy) {
    const row = ROWS[p.row];
    const r = row.head * h * p.size;
    const hop = Math.abs(Math.sin(t * Math.PI * 0.95 + p.phase * 1.2)) * h * (0.004 + energy * 0.016);
    const x = p.x * w + Math.sin(t * 0.9 + p.phase * 6) * r * 0.25;
    const y = row.y * h - hop;
    const up = p.arms < 0.22 + energy * 0.6;
    if (up) this.#drawArm(ctx, p, row, x, y, r, t, energy);
    ctx.fillStyle = this.#tops[p.row];
    ellipse(ctx, x, y - r * 0.1, r, r * 1.1);
    ellipse(ctx, x, y + r * 2.9, r * 2.05, r * 1.75);
    ctx.fillStyle = row.color;
    ellipse(ctx, x, y + r * 0.06, r * 0.99, r * 1.08);
    if (p.hair === 1) ellipse(ctx, x + r * 0.2, y - r * 1.15, r * 0.42, r * 0.42);
    if (p.hair === 2) ellipse(ctx, x, y + r * 0.5, r * 1.12, r * 1.1);
    ellipse(ctx, x, y + r * 3.05, r * 2.02, r * 1.74);
  }

  #drawArm(ctx, p, row, x, y, r, t, energy) {
    const side = p.phase > 0.5 ? 1 : -1;
    const wave = Math.sin(t * (1.6 + energy) + p.phase * 5) * 0.35;
    const [ex, ey] = [x + side * r * 1.7, y + r * 0.2];
    const [hx, hy] = [ex + side * r * 0.3 + wave * r * 2, ey - r * 2.5];
    ctx.fillStyle = row.color;
    limb(ctx, x + side * r * 1.3, y + r * 1.9, r * 0.44, ex, ey, r * 0.36);
    limb(ctx, ex, ey, r * 0.34, hx, hy, r * 0.26);
    if (p.arms > 0.16 + energy * 0.5) {
      ellipse(ctx, hx, hy - r * 0.2, r * 0.34, r * 0.42);
      return;
    }
    this.#drawStick(ctx, p, hx, hy, r, wave);
  }

  #drawStick(ctx, p, x, y, r, lean) {
    const [tx, ty] = [x + lean * r * 1.6, y - r * 2];
    const light = this.#glows[p.light];
    const size = r * 4.6;
    ctx.globalCompositeOperation = "lighter";
    ctx.globalAlpha = 0.55;
    ctx.drawImage(light, (x + tx) / 2 - size / 2, (y + ty) / 2 - size / 2, size, size);
    ctx.globalCompositeOperation = "source-over";
    ctx.globalAlpha = 1;
    ctx.strokeStyle = this.#colors[p.light];
    ctx.lineCap = "round";
    ctx.lineWidth = r * 0.34;
    ctx.beginPath();
    ctx.moveTo(x, y - r * 0.3);
    ctx.lineTo(tx, ty);
    ctx.stroke();
  }
}

/** Between two colours of the form #rrggbb. */
function mix(a, b, share) {
  const channel = (color, i) => parseInt(color.slice(1 + i * 2, 3 + i * 2), 16);
  const mixed = [0, 1, 2].map((i) => Math.round(channel(a, i) * (1 - share) + channel(b, i) * share));
  return `rgb(${mixed.join(" ")})`;
}
