// What gifts send up: lanterns that rise over the town, and fireworks for the
// dear ones. Bounded, oldest first out.

import { glow } from "./shapes.js";

const MOST_LANTERNS = 40;
const MOST_SPARKS = 260;
const LANTERN_LIFE_S = 11;

export class Sky {
  #lanterns = [];
  #sparks = [];
  #rockets = [];
  #colors;
  #glow;

  constructor({ palette }, height) {
    this.#colors = [...palette.lights, "#fff1cf", palette.disc];
    this.#glow = glow("#ffb347", Math.round(height * 0.16));
  }

  get empty() {
    return this.#lanterns.length + this.#sparks.length + this.#rockets.length === 0;
  }

  lantern(t) {
    const side = Math.random() < 0.5 ? Math.random() * 0.34 : 1 - Math.random() * 0.34;
    this.#lanterns.push({ born: t, x: side, sway: Math.random() * 6, size: 0.7 + Math.random() * 0.6, pace: 0.8 + Math.random() * 0.5 });
    if (this.#lanterns.length > MOST_LANTERNS) this.#lanterns.shift();
  }

  firework(t) {
    if (this.#rockets.length > 8) return;
    this.#rockets.push({ born: t, x: 0.12 + Math.random() * 0.76, top: 0.1 + Math.random() * 0.22, color: this.#colors[Math.floor(Math.random() * 3)] });
  }

  draw(ctx, w, h, t) {
    this.#lanterns = this.#lanterns.filter((l) => t - l.born < LANTERN_LIFE_S / l.pace);
    for (const lantern of this.#lanterns) this.#drawLantern(ctx, lantern, w, h, t);
    ctx.save();
    ctx.globalCompositeOperation = "lighter";
    this.#drawRockets(ctx, w, h, t);
    this.#drawSparks(ctx, h, t);
    ctx.restore();
  }

  #drawLantern(ctx, l, w, h, t) {
    const age = ((t - l.born) * l.pace) / LANTERN_LIFE_S;
    const s = h * 0.021 * l.size * (1 - age * 0.35);
    const x = l.x * w + Math.sin(t * 0.7 + l.sway) * h * 0.02;
    const y = h * (0.86 - age * 0.98);
    ctx.globalAlpha = Math.min(1, age * 8, (1 - age) * 4);
    ctx.globalCompositeOperation = "lighter";
    ctx.drawImage(this.#glow, x - s * 3.2, y - s * 3, s * 6.4, s * 6.4);
    ctx.globalCompositeOperation = "source-over";
    const body = ctx.createLinearGradient(0, y - s, 0, y + s);
    body.addColorStop(0, "#f2702d");
    body.addColorStop(0.6, "#ffb24d");
    body.addColorStop(1, "#fff0c2");
    ctx.fillStyle = body;
    ctx.beginPath();
    ctx.moveTo(x - s * 0.55, y + s);
    ctx.bezierCurveTo(x - s * 1.1, y + s * 0.1, x - s, y - s * 1.15, x, y - s * 1.15);
    ctx.bezierCurveTo(x + s, y - s * 1.15, x + s * 1.1, y + s * 0.1, x + s * 0.55, y + s);
    ctx.fill();
    ctx.globalAlpha = 1;
  }

  #drawRockets(ctx, w, h, t) {
    this.#rockets = this.#rockets.filter((rocket) => {
      const age = (t - rocket.born) / 0.9;
      const [x, y] = [rocket.x * w, h * (0.72 - (0.72 - rocket.top) * (1 - (1 - Math.min(1, age)) ** 2))];
      if (age >= 1) {
        this.#burst(x, y, rocket.color, t);
        return false;
      }
      ctx.strokeStyle = rocket.color;
      ctx.lineWidth = h * 0.004;
      ctx.globalAlpha = 0.8;
      ctx.beginPath();
      ctx.moveTo(x, y + h * 0.05 * (1 - age));
      ctx.lineTo(x, y);
      ctx.stroke();
      return true;
    });
  }

  #burst(x, y, color, t) {
    for (let i = 0; i < 54; i++) {
      const a = (i / 54) * Math.PI * 2 + Math.random() * 0.1;
      this.#sparks.push({ x, y, born: t, vx: Math.cos(a), vy: Math.sin(a), v: i % 3 === 0 ? 0.1 : 0.17 + Math.random() * 0.03, color: i % 3 === 0 ? this.#colors[2] : color });
    }
    if (this.#sparks.length > MOST_SPARKS) this.#sparks.splice(0, this.#sparks.length - MOST_SPARKS);
  }

  #drawSparks(ctx, h, t) {
    this.#sparks = this.#sparks.filter((s) => t - s.born < 1.7);
    for (const s of this.#sparks) {
      const age = (t - s.born) / 1.7;
      const reach = s.v * h * (1 - (1 - age) ** 3) * 1.2;
      const fall = age * age * h * 0.09;
      const [x, y] = [s.x + s.vx * reach, s.y + s.vy * reach + fall];
      ctx.globalAlpha = (1 - age) ** 1.4;
      ctx.strokeStyle = s.color;
      ctx.lineWidth = h * 0.004;
      ctx.lineCap = "round";
      ctx.beginPath();
      ctx.moveTo(x - s.vx * h * 0.014 * (1 - age), y - s.vy * h * 0.014 * (1 - age));
      ctx.lineTo(x, y);
      ctx.stroke();
    }
    ctx.globalAlpha = 1;
  }
}
