// The like button and its bubbles: by click, by tap, by a held pointer or key.

import { LikeFolder } from "../models/likes.js";
import { icon } from "./dom.js";

const MOST_BUBBLES = 36;
const HELD_EVERY_MS = 130;
const COLORS = ["#ff5c6c", "#ff8a5c", "#ffc457", "#f79ad3", "#c3a2ff", "#ff5c4d"];

export class Hearts {
  #button;
  #sky;
  #onLikes;
  #still;
  #folder = new LikeFolder();
  #pool = [];
  #flying = 0;
  #timer = 0;
  #held = 0;
  #ownShown = 0;
  #height = 0;

  /** `onLikes(count)` is called at most once a second. */
  constructor(button, sky, { signal, still, onLikes }) {
    this.#button = button;
    this.#sky = sky;
    this.#still = still;
    this.#onLikes = onLikes;
    this.#listen(signal);
    const resizes = new ResizeObserver(([entry]) => { this.#height = entry.contentRect.height; });
    resizes.observe(sky);
    signal.addEventListener("abort", () => resizes.disconnect());
    signal.addEventListener("abort", () => {
      clearTimeout(this.#timer);
      this.#release();
    });
  }

  /** Likes of the room: those of others rise here too, a few for many. */
  came(delta) {
    const others = Math.max(0, delta - this.#ownShown);
    this.#ownShown = Math.max(0, this.#ownShown - delta);
    const bubbles = Math.min(10, Math.ceil(others / 3));
    for (let i = 0; i < bubbles; i++) this.#bubble((i / bubbles) * 950);
  }

  tap() {
    if (this.#button.disabled) return;
    this.#bubble(0);
    if (!this.#folder.tap()) return;
    this.#ownShown += 1;
    this.#schedule();
  }

  #schedule() {
    clearTimeout(this.#timer);
    const due = this.#folder.dueIn(performance.now());
    if (due === null) return;
    this.#timer = setTimeout(() => {
      const count = this.#folder.take(performance.now());
      if (count > 0) this.#onLikes(count);
      this.#schedule();
    }, due);
  }

  #listen(signal) {
    const on = (name, listener) => this.#button.addEventListener(name, listener, { signal });
    on("pointerdown", (event) => {
      if (event.button !== 0) return;
      this.#hold();
    });
    for (const name of ["pointerup", "pointerleave", "pointercancel", "blur"]) on(name, () => this.#release());
    on("contextmenu", (event) => event.preventDefault());
    on("keydown", (event) => {
      if (event.key !== " " && event.key !== "Enter") return;
      event.preventDefault();
      this.tap();
    });
    // A click without a pointer comes from an assistive tool.
    on("click", (event) => event.detail === 0 && event.pointerType === "" && this.tap());
  }

  #hold() {
    this.#release();
    this.tap();
    this.#button.dataset.held = "";
    this.#held = setInterval(() => this.tap(), HELD_EVERY_MS);
  }

  #release() {
    clearInterval(this.#held);
    delete this.#button.dataset.held;
  }

  #bubble(delay) {
    if (this.#flying >= MOST_BUBBLES || document.hidden || this.#still.matches) return;
    this.#flying += 1;
    const heart = this.#pool.pop() ?? icon("heart");
    heart.style.color = COLORS[Math.floor(Math.random() * COLORS.length)];
    this.#sky.append(heart);
    const height = this.#height;
    const side = () => `${(Math.random() - 0.5) * 76}px`;
    const size = 0.7 + Math.random() * 0.7;
    const motion = heart.animate([
      { transform: "translate(0, 0) scale(0.2)", opacity: 0 },
      { transform: `translate(${side()}, ${-height * 0.18}px) scale(${size}) rotate(-8deg)`, opacity: 1, offset: 0.18 },
      { transform: `translate(${side()}, ${-height * 0.5}px) scale(${size}) rotate(10deg)`, opacity: 0.95, offset: 0.55 },
      { transform: `translate(${side()}, ${-height * 0.96}px) scale(${size * 0.8}) rotate(-6deg)`, opacity: 0 },
    ], { duration: 2200 + Math.random() * 900, delay, easing: "cubic-bezier(0.2, 0.5, 0.5, 1)", fill: "backwards" });
    motion.onfinish = () => {
      heart.remove();
      this.#flying -= 1;
      this.#pool.push(heart);
    };
  }
}
