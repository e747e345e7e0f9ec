// Danmaku over the stage. Nodes are pooled and moved by transform alone; widths
// are measured on a canvas, so that nothing forces a layout.

import { Lanes } from "../models/lanes.js";
import { WaitingRoom } from "../models/waiting.js";
import { frames, make } from "./dom.js";

/** More than a stage can show; a bound for memory. */
const MOST_NODES = 160;
const LINE = 1.5;

export class Danmaku {
  #layer;
  #lanes = new Lanes();
  #waiting = new WaitingRoom();
  #pool = [];
  #flying = new Set();
  #ruler = document.createElement("canvas").getContext("2d");
  #size = { width: 0, height: 0, font: 0 };
  #hidden = false;
  #wake;

  constructor(layer, { signal }) {
    this.#layer = layer;
    this.#wake = frames((now) => this.#offer(now), signal);
    const resizes = new ResizeObserver(() => this.#resize());
    resizes.observe(layer);
    signal.addEventListener("abort", () => resizes.disconnect());
    this.#resize();
  }

  /** 0 shows none but the own, 1 all that fit. */
  set density(share) {
    this.#lanes.density = share;
    this.#hidden = share === 0;
    if (this.#hidden) this.clear();
  }

  /** Lets a text fly: `{text, color, mode, own}`. */
  show(item) {
    if (document.hidden || (this.#hidden && !item.own) || this.#size.width === 0) return;
    this.#waiting.add(item, performance.now());
    this.#wake();
  }

  /** Takes everything from the stage. */
  clear() {
    this.#waiting.clear();
    for (const { node, motion } of [...this.#flying]) {
      motion.cancel();
      node.remove();
    }
    this.#flying.clear();
  }

  /** A text whose message was deleted leaves at once. */
  remove(mid) {
    for (const flight of this.#flying) if (flight.mid === mid) flight.motion.finish();
  }

  #offer(now) {
    this.#waiting.offer((item) => this.#launch(item, now), now);
    return this.#waiting.size > 0;
  }

  #launch(item, now) {
    if (this.#flying.size >= MOST_NODES && !item.own) return false;
    const { font, width } = this.#size;
    const w = Math.ceil(this.#ruler.measureText(item.text).width + font * 0.8) + 2;
    const place = this.#lanes.place(item.mode ?? "scroll", w, now, { own: item.own });
    if (!place) return false;
    const node = this.#pool.pop() ?? make("div");
    node.className = item.own ? "fly own" : "fly";
    node.textContent = item.text;
    node.style.color = item.color ?? "";
    const y = Math.round(place.row * font * LINE);
    const motion = node.animate(path(place.mode, width, w, y), { duration: place.durationMs, fill: "both" });
    // The lane counts from this frame; an animation left to itself would start when the browser gets to it, and a busy one
    // would let texts overlap.
    motion.startTime = now;
    const flight = { node, motion, mid: item.mid };
    motion.onfinish = () => this.#land(flight);
    this.#flying.add(flight);
    this.#layer.append(node);
    return true;
  }

  #land(flight) {
    this.#flying.delete(flight);
    flight.motion.cancel();
    flight.node.remove();
    this.#pool.push(flight.node);
  }

  #resize() {
    const { clientWidth: width, clientHeight: height } = this.#layer;
    const style = getComputedStyle(this.#layer);
    const font = parseFloat(style.fontSize);
    if (width === this.#size.width && height === this.#size.height && font === this.#size.font) return;
    this.#size = { width, height, font };
    this.#ruler.font = `600 ${font}px ${style.fontFamily}`;
    this.#lanes.resize(width, height, font * LINE);
    this.clear();
  }
}

function path(mode, width, w, y) {
  if (mode === "scroll") return [{ transform: `translate3d(${width}px, ${y}px, 0)` }, { transform: `translate3d(${-w}px, ${y}px, 0)` }];
  const x = Math.round((width - w) / 2);
  return [{ transform: `translate3d(${x}px, ${y}px, 0)`, opacity: 1 }, { transform: `translate3d(${x}px, ${y}px, 0)`, opacity: 1, offset: 0.94 }, { transform: `translate3d(${x}px, ${y}px, 0)`, opacity: 0 }];
}
