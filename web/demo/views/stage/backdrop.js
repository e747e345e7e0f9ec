// What does not move: sky, stars, the disc, the town, the stage floor and the
// truss. Drawn once per size.

import { seeded } from "../../models/scene.js";
import { offscreen } from "./shapes.js";

/** Places of the picture, in shares of its height. */
export const HORIZON = 0.7;
export const FLOOR = 0.775;
export const DISC = { y: 0.42, r: 0.245 };

export function drawBackdrop(scene, width, height) {
  return offscreen(width, height, (ctx, w, h) => {
    drawSky(ctx, scene, w, h);
    drawDisc(ctx, scene, w, h);
    drawTown(ctx, scene, scene.far, w, h, 0.45);
    drawTown(ctx, scene, scene.near, w, h, 1);
    drawFloor(ctx, scene, w, h);
    drawTruss(ctx, w, h);
  });
}

function drawSky(ctx, { palette, stars }, w, h) {
  const sky = ctx.createLinearGradient(0, 0, 0, HORIZON * h);
  [0, 0.42, 0.8, 1].forEach((stop, i) => sky.addColorStop(stop, palette.sky[i]));
  ctx.fillStyle = sky;
  ctx.fillRect(0, 0, w, h);
  ctx.fillStyle = "#fff";
  for (const star of stars) {
    ctx.globalAlpha = 0.25 + 0.55 * star.phase * (1 - star.y * 1.6);
    ctx.fillRect(star.x * w, star.y * h, (star.size * h) / 500, (star.size * h) / 500);
  }
  ctx.globalAlpha = 1;
}

function drawDisc(ctx, { palette }, w, h) {
  const [x, y, r] = [w / 2, DISC.y * h, DISC.r * h];
  const halo = ctx.createRadialGradient(x, y, r * 0.8, x, y, r * 2.5);
  halo.addColorStop(0, `${palette.disc}66`);
  halo.addColorStop(0.4, `${palette.disc}1f`);
  halo.addColorStop(1, `${palette.disc}00`);
  ctx.fillStyle = halo;
  ctx.fillRect(0, 0, w, h);
  const disc = ctx.createLinearGradient(0, y - r, 0, y + r);
  disc.addColorStop(0, "#fffaf0");
  disc.addColorStop(0.35, palette.disc);
  disc.addColorStop(1, palette.sky[3]);
  ctx.fillStyle = disc;
  ctx.beginPath();
  ctx.arc(x, y, r, 0, Math.PI * 2);
  ctx.fill();
  cutBands(ctx, palette, x, y, r);
}

/** Strips of sky across the lower half, as of thin cloud. */
function cutBands(ctx, palette, x, y, r) {
  ctx.save();
  ctx.beginPath();
  ctx.arc(x, y, r + 1, 0, Math.PI * 2);
  ctx.clip();
  ctx.fillStyle = palette.sky[2];
  for (let i = 0; i < 5; i++) {
    ctx.globalAlpha = 0.28 + i * 0.11;
    ctx.fillRect(x - r, y + r * (0.16 + i * 0.17), r * 2, r * (0.014 + i * 0.012));
  }
  ctx.restore();
}

function drawTown(ctx, { palette, seed }, buildings, w, h, strength) {
  const random = seeded(seed ^ buildings.length);
  const ground = HORIZON * h + 0.02 * h;
  ctx.save();
  for (const b of buildings) {
    const [x, bw, bh] = [b.x * w, b.w * w, b.h * h];
    ctx.globalAlpha = strength;
    const wall = ctx.createLinearGradient(0, ground - bh, 0, ground);
    wall.addColorStop(0, palette.town);
    wall.addColorStop(1, strength < 1 ? palette.sky[2] : palette.sky[1]);
    ctx.fillStyle = wall;
    ctx.fillRect(x, ground - bh, bw, bh + h * 0.05);
    drawRoof(ctx, b.roof, x, ground - bh, bw, h);
    if (strength === 1) drawWindows(ctx, palette, random, b, x, ground - bh, bw, bh, h);
  }
  ctx.restore();
}

function drawRoof(ctx, roof, x, y, w, h) {
  const mid = x + w / 2;
  ctx.beginPath();
  if (roof === "step") ctx.rect(x + w * 0.2, y - h * 0.018, w * 0.6, h * 0.02);
  if (roof === "mast") {
    ctx.rect(x + w * 0.3, y - h * 0.012, w * 0.4, h * 0.014);
    ctx.rect(mid - 1, y - h * 0.075, Math.max(1.5, h * 0.0028), h * 0.08);
  }
  if (roof === "slope") {
    ctx.moveTo(x, y + 1);
    ctx.lineTo(x + w, y + 1);
    ctx.lineTo(x + w, y - h * 0.035);
  }
  if (roof === "dome") ctx.ellipse(mid, y + 1, w * 0.36, h * 0.024, 0, Math.PI, 0);
  ctx.fill();
  if (roof === "pagoda") drawPagoda(ctx, mid, y, w, h);
}

function drawPagoda(ctx, mid, y, w, h) {
  for (let tier = 0; tier < 3; tier++) {
    const half = w * (0.66 - tier * 0.15);
    const base = y - tier * h * 0.026;
    ctx.fillRect(mid - half * 0.6, base - h * 0.02, half * 1.2, h * 0.022);
    ctx.beginPath();
    ctx.moveTo(mid - half, base - h * 0.012);
    ctx.quadraticCurveTo(mid - half * 0.5, base - h * 0.016, mid - half * 0.35, base - h * 0.03);
    ctx.lineTo(mid + half * 0.35, base - h * 0.03);
    ctx.quadraticCurveTo(mid + half * 0.5, base - h * 0.016, mid + half, base - h * 0.012);
    ctx.lineTo(mid + half * 0.9, base - h * 0.002);
    ctx.lineTo(mid - half * 0.9, base - h * 0.002);
    ctx.fill();
  }
  ctx.fillRect(mid - 1, y - h * 0.115, Math.max(1.5, h * 0.003), h * 0.05);
}

function drawWindows(ctx, palette, random, b, x, y, w, bh, h) {
  const cell = h * 0.0125;
  const columns = Math.max(1, Math.floor((w - cell) / (cell * 1.25)));
  const rows = Math.floor((bh - cell) / (cell * 1.3));
  const lit = 0.16 + b.windows * 0.3;
  for (let r = 0; r < rows; r++) {
    for (let c = 0; c < columns; c++) {
      if (random() > lit) continue;
      ctx.globalAlpha = 0.35 + random() * 0.5;
      ctx.fillStyle = random() < 0.75 ? palette.disc : palette.lights[1];
      ctx.fillRect(x + cell * 0.6 + c * cell * 1.25, y + cell * 0.8 + r * cell * 1.3, cell * 0.55, cell * 0.5);
    }
  }
}

function drawFloor(ctx, { palette }, w, h) {
  const top = FLOOR * h - h * 0.03;
  const floor = ctx.createLinearGradient(0, top, 0, h);
  floor.addColorStop(0, palette.town);
  floor.addColorStop(0.35, "#08080d");
  floor.addColorStop(1, "#040407");
  ctx.fillStyle = floor;
  ctx.fillRect(0, top, w, h - top);
  const shine = ctx.createRadialGradient(w / 2, top + h * 0.03, 0, w / 2, top + h * 0.03, h * 0.62);
  shine.addColorStop(0, `${palette.disc}99`);
  shine.addColorStop(0.5, `${palette.sky[3]}30`);
  shine.addColorStop(1, `${palette.sky[2]}00`);
  ctx.save();
  ctx.translate(0, top);
  ctx.scale(1, 0.22);
  ctx.translate(0, -top);
  ctx.fillStyle = shine;
  ctx.fillRect(0, top, w, h);
  ctx.restore();
  ctx.fillStyle = palette.lights[0];
  ctx.globalAlpha = 0.9;
  ctx.fillRect(0, top, w, Math.max(1.5, h * 0.0035));
  ctx.globalAlpha = 1;
}

function drawTruss(ctx, w, h) {
  const [y, t] = [h * 0.035, h * 0.034];
  ctx.strokeStyle = "#05060b";
  ctx.lineWidth = Math.max(1.5, h * 0.0055);
  ctx.beginPath();
  ctx.moveTo(0, y);
  ctx.lineTo(w, y);
  ctx.moveTo(0, y + t);
  ctx.lineTo(w, y + t);
  for (let x = 0; x < w + t; x += t * 1.3) {
    ctx.moveTo(x, y);
    ctx.lineTo(x + t * 0.65, y + t);
    ctx.lineTo(x + t * 1.3, y);
  }
  ctx.stroke();
}
