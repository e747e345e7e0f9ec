// A still picture of a room's stage, for the lobby.

import { sceneOf } from "../models/scene.js";
import { FLOOR, drawBackdrop } from "./stage/backdrop.js";
import { Crowd } from "./stage/crowd.js";
import { Lights } from "./stage/lights.js";
import { drawPerformer } from "./stage/performer.js";

/** Draws the room on the canvas, at the canvas' own size. */
export function drawPoster(canvas, room) {
  const [w, h] = [canvas.width, canvas.height];
  const scene = sceneOf(room);
  const ctx = canvas.getContext("2d", { alpha: false });
  const lights = new Lights(scene, h);
  const t = (scene.seed % 100) / 10;
  ctx.drawImage(drawBackdrop(scene, w, h), 0, 0);
  for (let i = 0; i < 12; i++) lights.settle(t, 0.5);
  lights.drawBars(ctx, w, h, t, 0.5);
  lights.drawBeams(ctx, w, h, t, 0.4);
  drawPerformer(ctx, scene.performer, w / 2, h * FLOOR, h * 0.44, { beat: t % 1, sway: Math.sin(t) }, [scene.palette.lights[0], scene.palette.disc]);
  lights.drawLamps(ctx, w, h, t, 0.4);
  new Crowd(scene, h).draw(ctx, w, h, t, 0.3);
}
