// The stage in place of the video: a drawn night that moves with the room.

import { Energy } from "../../models/energy.js";
import { Pace } from "../../models/pace.js";
import { sceneOf } from "../../models/scene.js";
import { FLOOR, drawBackdrop } from "./backdrop.js";
import { Crowd } from "./crowd.js";
import { Lights } from "./lights.js";
import { drawPerformer } from "./performer.js";
import { Sky } from "./sky.js";

/** Pixels of the longer edge: more costs time and shows nothing. */
const MOST_PIXELS = 1600;
const BEATS_PER_SECOND = 1.9 / 2;

export class Stage {
  #canvas;
  #ctx;
  #scene;
  #still;
  #energy = new Energy();
  #parts = null;
  #pace = new Pace();
  #frame = 0;

  /** `still`: draws one quiet picture instead of a moving one. */
  constructor(canvas, room, { signal, still }) {
    this.#canvas = canvas;
    this.#ctx = canvas.getContext("2d", { alpha: false });
    this.#scene = sceneOf(room);
    this.#still = still;
    const resizes = new ResizeObserver(() => this.#resize());
    resizes.observe(canvas);
    signal.addEventListener("abort", () => {
      resizes.disconnect();
      cancelAnimationFrame(this.#frame);
    });
    still.addEventListener("change", () => this.#run(), { signal });
  }

  danmaku(count = 1) {
    this.#energy.add("danmaku", count, performance.now());
  }

  likes(count) {
    this.#energy.add("like", count, performance.now());
  }

  gift(worth) {
    const now = performance.now();
    this.#energy.add("gift", Math.min(4, 1 + worth / 20), now);
    if (!this.#parts || this.#still.matches) return;
    const lanterns = Math.min(6, 1 + Math.floor(worth / 5));
    for (let i = 0; i < lanterns; i++) this.#parts.sky.lantern(now / 1000 + i * 0.25);
    if (worth >= 50) for (let i = 0; i < 3; i++) this.#parts.sky.firework(now / 1000 + i * 0.35);
  }

  #resize() {
    const { clientWidth, clientHeight } = this.#canvas;
    if (clientWidth === 0 || clientHeight === 0) return;
    const ratio = Math.min(devicePixelRatio, 2, MOST_PIXELS / clientWidth) * this.#pace.scale;
    const [w, h] = [Math.round(clientWidth * ratio), Math.round(clientHeight * ratio)];
    if (this.#parts && this.#canvas.width === w && this.#canvas.height === h) return;
    this.#canvas.width = w;
    this.#canvas.height = h;
    this.#parts = {
      backdrop: drawBackdrop(this.#scene, w, h),
      lights: new Lights(this.#scene, h),
      crowd: new Crowd(this.#scene, h),
      sky: this.#parts?.sky ?? new Sky(this.#scene, h),
    };
    if (this.#frame === 0 || this.#still.matches) this.#run();
    else this.#draw(performance.now() / 1000, this.#energy.at(performance.now()));
  }

  #run() {
    cancelAnimationFrame(this.#frame);
    if (!this.#parts) return;
    if (this.#still.matches) {
      this.#draw(2.2, 0.35);
      return;
    }
    const step = (now) => {
      this.#frame = requestAnimationFrame(step);
      if (!this.#pace.due(now)) return;
      if (this.#pace.drawn(now)) this.#resize();
      this.#draw(now / 1000, this.#energy.at(now));
    };
    this.#frame = requestAnimationFrame(step);
    this.#draw(performance.now() / 1000, 0.2);
  }

  #draw(t, energy) {
    const ctx = this.#ctx;
    const [w, h] = [this.#canvas.width, this.#canvas.height];
    const { backdrop, lights, crowd, sky } = this.#parts;
    const { performer, palette } = this.#scene;
    ctx.drawImage(backdrop, 0, 0);
    lights.drawBars(ctx, w, h, t, energy);
    sky.draw(ctx, w, h, t);
    lights.drawBeams(ctx, w, h, t, energy);
    const pose = { beat: (t * BEATS_PER_SECOND * 2) % 1, sway: Math.sin(t * Math.PI * BEATS_PER_SECOND) };
    drawPerformer(ctx, performer, w / 2, h * FLOOR, h * 0.44, pose, [palette.lights[0], palette.disc]);
    lights.drawLamps(ctx, w, h, t, energy);
    crowd.draw(ctx, w, h, t, energy);
  }
}
