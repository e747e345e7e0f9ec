// The performer: a figure of limbs, one unit high, feet at the origin, against
// the light. `beat` runs 0 to 1 within each beat, `sway` goes −1 to 1.

import { blob, ellipse, limb } from "./shapes.js";

/** Layers from back to front; each gets its own rim of light, so that an arm stands out from the body. */
const FIGURES = {
  singer: [singerBody, singerArms],
  guitarist: [guitaristBody, guitar, guitaristArms],
  dj: [djBody, djArms, desk],
};
const ACCENTS = { dj: deskLights };
const DARK = "#07070c";

/** Draws the figure at (x, y), `height` pixels high, lit by two rims. */
export function drawPerformer(ctx, kind, x, y, height, pose, rims) {
  const passes = [[rims[0], -0.0085], [rims[1], 0.007], [DARK, 0]];
  for (const [i, layer] of FIGURES[kind].entries()) {
    for (const [color, full] of passes) {
      const shift = i === 0 ? full : full * 0.55;
      paint(ctx, layer, x + shift * height, y - Math.abs(shift) * height * 0.4, height, pose, color);
    }
  }
  if (ACCENTS[kind]) paint(ctx, ACCENTS[kind], x, y, height, pose, rims[0]);
}

function paint(ctx, layer, x, y, height, pose, color) {
  ctx.save();
  ctx.translate(x, y);
  ctx.scale(height, height);
  ctx.fillStyle = color;
  ctx.strokeStyle = color;
  ctx.lineCap = "round";
  layer(ctx, pose);
  ctx.restore();
}

const bob = (beat, size) => Math.sin(beat * Math.PI) * size;

function legs(ctx, bend, spread) {
  const hip = -0.5 + bend * 0.02;
  for (const side of [-1, 1]) {
    const knee = side * (0.072 + spread) + (side > 0 ? bend * 0.03 : 0);
    const foot = side * (0.078 + spread * 1.7);
    limb(ctx, side * 0.04, hip, 0.056, knee, -0.27, 0.036);
    limb(ctx, knee, -0.27, 0.036, foot, -0.035, 0.022);
    limb(ctx, foot, -0.018, 0.02, foot + side * 0.05, -0.009, 0.012);
  }
}

function head(ctx, x, y, tilt) {
  limb(ctx, x * 0.5, y + 0.12, 0.026, x, y + 0.04, 0.021);
  ellipse(ctx, x, y, 0.043, 0.057, tilt);
}

function singerBody(ctx, { beat, sway }) {
  ctx.rotate(sway * 0.03);
  legs(ctx, bob(beat, 0.1), 0.026);
  ctx.translate(sway * 0.012, bob(beat, 0.012));
  const hem = sway * 0.022;
  blob(ctx, [[-0.085, -0.815], [0.085, -0.815], [0.08, -0.71], [0.05, -0.63], [0.09, -0.53], [0.15 + hem, -0.4], [0.02 + hem, -0.37], [-0.15 + hem, -0.4], [-0.09, -0.53], [-0.05, -0.63], [-0.08, -0.71]]);
  limb(ctx, -0.075, -0.8, 0.03, 0.075, -0.8, 0.03);
  head(ctx, 0.006, -0.925, 0.12);
  const swing = -sway * 0.03;
  blob(ctx, [[-0.05, -0.945], [-0.035, -0.995], [0.02, -1.01], [0.066, -0.97], [0.074, -0.89], [0.105 + swing, -0.77], [0.085 + swing * 1.6, -0.65], [0.05 + swing * 1.3, -0.72], [0.036, -0.86], [0.03, -0.93], [-0.015, -0.965]]);
}

function singerArms(ctx, { beat, sway }) {
  ctx.rotate(sway * 0.03);
  ctx.translate(sway * 0.012, bob(beat, 0.012));
  // One arm is thrown up and rides on the beat.
  const lift = bob(beat, 0.02);
  const hand = 0.225 + sway * 0.025;
  limb(ctx, 0.085, -0.795, 0.028, 0.175, -0.92 - lift, 0.021);
  limb(ctx, 0.175, -0.92 - lift, 0.021, hand, -1.075 - lift, 0.014);
  ellipse(ctx, hand + 0.005, -1.1 - lift, 0.016, 0.021, 0.2);
  limb(ctx, hand + 0.002, -1.11 - lift, 0.0075, hand + 0.012, -1.152 - lift, 0.0055);
  limb(ctx, hand + 0.012, -1.1 - lift, 0.007, hand + 0.032, -1.135 - lift, 0.005);
  // The other holds the microphone.
  limb(ctx, -0.085, -0.79, 0.028, -0.16, -0.69, 0.022);
  limb(ctx, -0.16, -0.69, 0.022, -0.075, -0.82, 0.016);
  limb(ctx, -0.088, -0.8, 0.011, -0.04, -0.872, 0.01);
  ellipse(ctx, -0.035, -0.882, 0.02, 0.02);
}

function guitaristBody(ctx, { beat, sway }) {
  ctx.rotate(sway * 0.02 - 0.02);
  legs(ctx, bob(beat, 0.1), 0.058);
  ctx.translate(0, bob(beat, 0.014));
  blob(ctx, [[-0.1, -0.815], [0.1, -0.815], [0.1, -0.72], [0.075, -0.58], [0.088, -0.44], [0, -0.43], [-0.088, -0.44], [-0.075, -0.58], [-0.1, -0.72]]);
  limb(ctx, -0.085, -0.8, 0.032, 0.085, -0.8, 0.032);
  const nod = bob(beat, 0.016);
  head(ctx, 0.012, -0.92 + nod, 0.18);
  // Hair that falls over the face as the head goes with the beat.
  blob(ctx, [[-0.05, -0.93 + nod], [-0.04, -0.985 + nod], [0.01, -1.0 + nod], [0.06, -0.98 + nod], [0.085, -0.935 + nod], [0.07, -0.9 + nod], [0.088, -0.86 + nod], [0.05, -0.885 + nod], [0.02, -0.95 + nod], [-0.03, -0.925 + nod], [-0.06, -0.88 + nod]]);
}

function guitar(ctx, { beat, sway }) {
  ctx.translate(0, bob(beat, 0.014));
  ctx.lineWidth = 0.011;
  ctx.beginPath();
  ctx.moveTo(0.08, -0.82);
  ctx.lineTo(-0.12, -0.6);
  ctx.stroke();
  ctx.translate(-0.03, -0.575);
  ctx.rotate(-0.44 + sway * 0.04);
  blob(ctx, [[-0.16, -0.05], [-0.1, -0.105], [-0.03, -0.06], [0.05, -0.095], [0.12, -0.085], [0.08, -0.03], [0.06, 0], [0.09, 0.05], [0.05, 0.085], [-0.02, 0.062], [-0.1, 0.11], [-0.165, 0.06]]);
  limb(ctx, 0.05, -0.012, 0.012, 0.41, -0.012, 0.0095);
  blob(ctx, [[0.395, -0.03], [0.47, -0.042], [0.495, -0.012], [0.47, 0.012], [0.395, 0.008]]);
}

function guitaristArms(ctx, { beat, sway }) {
  ctx.translate(0, bob(beat, 0.014));
  const slide = sway * 0.02;
  limb(ctx, 0.1, -0.79, 0.03, 0.21, -0.675, 0.023);
  limb(ctx, 0.21, -0.675, 0.022, 0.215 + slide, -0.71 - slide * 0.5, 0.018);
  const strum = Math.sin(beat * Math.PI * 4) * 0.024;
  limb(ctx, -0.1, -0.79, 0.03, -0.185, -0.665, 0.023);
  limb(ctx, -0.185, -0.665, 0.022, -0.03, -0.575 + strum, 0.015);
}

function djBody(ctx, { beat, sway }) {
  ctx.translate(sway * 0.016, bob(beat, 0.02));
  blob(ctx, [[-0.1, -0.815], [0.1, -0.815], [0.105, -0.7], [0.085, -0.55], [0.095, -0.36], [-0.095, -0.36], [-0.085, -0.55], [-0.105, -0.7]]);
  limb(ctx, -0.085, -0.8, 0.034, 0.085, -0.8, 0.034);
  head(ctx, 0, -0.925, -0.12 + sway * 0.06);
  // A cap, its peak to the side, under the headphones.
  blob(ctx, [[-0.05, -0.94], [-0.045, -0.985], [0, -1.0], [0.045, -0.985], [0.055, -0.95], [0.095, -0.935], [0.09, -0.925], [0.03, -0.935]]);
  ctx.lineWidth = 0.016;
  ctx.beginPath();
  ctx.arc(0, -0.94, 0.057, Math.PI * 1.02, Math.PI * 1.98);
  ctx.stroke();
  ellipse(ctx, 0.052, -0.922, 0.018, 0.029, -0.1);
}

function djArms(ctx, { beat, sway }) {
  ctx.translate(sway * 0.016, bob(beat, 0.02));
  limb(ctx, 0.1, -0.785, 0.031, 0.19, -0.64, 0.024);
  limb(ctx, 0.19, -0.64, 0.023, 0.16, -0.44 - bob(beat, 0.02), 0.016);
  limb(ctx, -0.1, -0.785, 0.031, -0.185, -0.86, 0.023);
  limb(ctx, -0.185, -0.86, 0.022, -0.07, -0.915, 0.016);
  ellipse(ctx, -0.055, -0.92, 0.019, 0.03, 0.1);
}

function desk(ctx) {
  ctx.beginPath();
  ctx.moveTo(-0.42, -0.42);
  ctx.lineTo(0.42, -0.42);
  ctx.lineTo(0.36, 0.012);
  ctx.lineTo(-0.36, 0.012);
  ctx.fill();
  ellipse(ctx, -0.24, -0.424, 0.1, 0.015);
  ellipse(ctx, 0.24, -0.424, 0.1, 0.015);
  ctx.fillRect(-0.075, -0.45, 0.15, 0.034);
}

/** The desk's front: a row of bars that rise and fall with the beat. */
function deskLights(ctx, { beat, sway }) {
  const bars = 19;
  for (let i = 0; i < bars; i++) {
    const k = i / (bars - 1) - 0.5;
    const level = 0.05 + 0.13 * Math.abs(Math.sin(k * 9 + sway * 2.5)) * (0.5 + 0.5 * Math.sin(beat * Math.PI));
    ctx.globalAlpha = 0.9 - Math.abs(k) * 0.9;
    ctx.fillRect(k * 0.62 - 0.009, -0.2 - level, 0.018, level * 2);
  }
  ctx.globalAlpha = 1;
}
