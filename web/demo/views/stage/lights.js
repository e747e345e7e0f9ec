// Beams from the truss and the equaliser around the disc.

import { DISC } from "./backdrop.js";
import { offscreen } from "./shapes.js";

const BEAMS = 7;
const BARS = 96;

export class Lights {
  #beams;
  #palette;
  #levels = new Float32Array(BARS);

  constructor({ palette }, height) {
    this.#palette = palette;
    this.#beams = palette.lights.map((color) => beamPicture(color, height));
  }

  /** The equaliser: bars that stand around the disc, higher the livelier the room. */
  drawBars(ctx, w, h, t, energy) {
    const [x, y, r] = [w / 2, DISC.y * h, DISC.r * h];
    ctx.save();
    ctx.translate(x, y);
    ctx.lineCap = "round";
    ctx.lineWidth = Math.max(1.5, (Math.PI * 2 * r * 0.46) / BARS);
    ctx.strokeStyle = this.#palette.disc;
    ctx.globalAlpha = 0.85;
    ctx.beginPath();
    for (let i = 0; i < BARS; i++) {
      const level = this.#level(i, t, energy);
      const a = (i / BARS) * Math.PI * 2 - Math.PI / 2;
      const [c, s] = [Math.cos(a), Math.sin(a)];
      const from = r * 1.07;
      const to = from + r * (0.015 + level * 0.34);
      ctx.moveTo(c * from, s * from);
      ctx.lineTo(c * to, s * to);
    }
    ctx.stroke();
    ctx.restore();
  }

  /** Lets the bars take a step without drawing: a still picture needs them up. */
  settle(t, energy) {
    for (let i = 0; i < BARS; i++) this.#level(i, t, energy);
  }

  /** Mirrored left and right; three waves of different pace, smoothed so that bars fall slower than they rise. */
  #level(i, t, energy) {
    const k = Math.min(i, BARS - i) / (BARS / 2);
    const wave = Math.sin(k * 19 + t * 3.1) * Math.sin(k * 7 - t * 2.3) * 0.5 + Math.sin(k * 31 - t * 5.2) * 0.25;
    const beat = Math.max(0, Math.sin(t * Math.PI * 1.9)) ** 6;
    const target = Math.max(0, wave * (0.35 + energy * 0.7) + beat * (0.12 + energy * 0.35) * (1 - k * 0.6)) + energy * 0.12;
    const now = this.#levels[i];
    this.#levels[i] = target > now ? now + (target - now) * 0.5 : now + (target - now) * 0.12;
    return this.#levels[i];
  }

  drawBeams(ctx, w, h, t, energy) {
    ctx.save();
    ctx.globalCompositeOperation = "lighter";
    for (let i = 0; i < BEAMS; i++) {
      const side = (i / (BEAMS - 1)) * 2 - 1;
      const swing = Math.sin(t * 0.45 + i * 1.7) * (0.16 + energy * 0.12);
      ctx.save();
      ctx.translate(w * (0.5 + side * 0.44), h * 0.06);
      ctx.rotate(side * 0.34 + swing);
      ctx.globalAlpha = (0.11 + energy * 0.14) * (0.7 + 0.3 * Math.sin(t * 1.3 + i * 2.1));
      const beam = this.#beams[i % 2];
      ctx.drawImage(beam, -beam.width / 2, 0);
      ctx.restore();
    }
    ctx.restore();
  }

  drawLamps(ctx, w, h, t, energy) {
    for (let i = 0; i < BEAMS; i++) {
      const side = (i / (BEAMS - 1)) * 2 - 1;
      const x = w * (0.5 + side * 0.44);
      ctx.fillStyle = "#05060b";
      ctx.fillRect(x - h * 0.013, h * 0.045, h * 0.026, h * 0.03);
      ctx.fillStyle = this.#palette.lights[i % 2];
      ctx.globalAlpha = 0.6 + energy * 0.3 + 0.1 * Math.sin(t * 2 + i);
      ctx.beginPath();
      ctx.arc(x, h * 0.076, h * 0.0085, 0, Math.PI * 2);
      ctx.fill();
      ctx.globalAlpha = 1;
    }
  }
}

function beamPicture(color, height) {
  const length = height * 1.05;
  const width = height * 0.36;
  return offscreen(width, length, (ctx, w, h) => {
    const g = ctx.createLinearGradient(0, 0, 0, h);
    g.addColorStop(0, `${color}ff`);
    g.addColorStop(0.5, `${color}66`);
    g.addColorStop(1, `${color}00`);
    ctx.fillStyle = g;
    // A fan of narrowing wedges gives the beam a soft edge.
    for (let i = 1; i <= 6; i++) {
      const half = (w / 2) * (i / 6);
      ctx.globalAlpha = 0.3;
      ctx.beginPath();
      ctx.moveTo(w / 2 - height * 0.004, 0);
      ctx.lineTo(w / 2 + height * 0.004, 0);
      ctx.lineTo(w / 2 + half, h);
      ctx.lineTo(w / 2 - half, h);
      ctx.fill();
    }
  });
}
