// What went through over the last minutes, above the axis, and what did not, below it, each to a scale of its own:
// refusals are few among what is allowed, and must be seen all the same.

import { nearest, niceTop, path, runs } from "../../models/limits/scale.js";
import { make, svg } from "../dom.js";
import { last } from "../../models/older.js";

const WIDTH = 1000;

export class Chart {
  element = make("figure", "chart");
  #language;
  #height;
  #middle;
  #picture;
  #parts = {};
  #marks = svg("g", { class: "marks" });
  #labels;
  #reading = make("figcaption", "reading");
  #cursor = make("i", "cursor");
  #points = [];
  #window = { from: 0, to: 1 };

  /** `height` in pixels; `small` leaves out axis labels. */
  constructor(language, { height = 180, small = false } = {}) {
    this.#language = language;
    this.#height = height;
    this.#middle = Math.round(height * 0.62);
    this.element.style.setProperty("--chart-height", `${height}px`);
    if (small) this.element.classList.add("small");
    this.#picture = svg("svg", { viewBox: `0 0 ${WIDTH} ${height}`, preserveAspectRatio: "none", role: "img" });
    for (const part of ["allow", "line", "degrade", "reject", "shadow"]) {
      this.#parts[part] = svg("path", { class: part });
    }
    const middle = svg("path", { class: "axis", d: `M0 ${this.#middle}H${WIDTH}` });
    this.#picture.append(this.#marks, ...Object.values(this.#parts), middle);
    this.#labels = { top: make("span", "tick top"), bottom: make("span", "tick bottom") };
    const plot = make("div", "plot");
    plot.append(this.#picture, this.#labels.top, this.#labels.bottom, this.#cursor);
    this.#cursor.hidden = true;
    this.element.append(this.#reading, plot);
    plot.addEventListener("pointermove", (event) => this.#point(event, plot));
    plot.addEventListener("pointerleave", () => this.#leave());
  }

  show(points, marks, window) {
    this.#points = points;
    this.#window = window;
    const x = (p) => ((p.at - window.from) / (window.to - window.from)) * WIDTH;
    const up = niceTop(Math.max(0, ...points.map((p) => p.allow)));
    const down = niceTop(Math.max(0, ...points.map((p) => p.degrade + p.reject + p.shadow)));
    const above = (v) => this.#middle - (v / up) * (this.#middle - 10);
    const below = (v) => this.#middle + (v / down) * (this.#height - this.#middle - 8);
    const area = (part, from, to) => {
      const upper = runs(points, x, (p) => from(p));
      const lower = runs(points, x, (p) => to(p));
      const d = upper.map((run, i) => `${path(run)}${path([...lower[i]].reverse()).replace("M", "L")}Z`).join("");
      this.#parts[part].setAttribute("d", d);
    };
    const allowed = runs(points, x, (p) => above(p.allow));
    this.#parts.allow.setAttribute("d", allowed.map((r) => path(r, this.#middle)).join(""));
    this.#parts.line.setAttribute("d", allowed.map((r) => path(r)).join(""));
    area("reject", () => this.#middle, (p) => below(p.reject));
    area("degrade", (p) => below(p.reject), (p) => below(p.reject + p.degrade));
    area("shadow", (p) => below(p.reject + p.degrade), (p) => below(p.reject + p.degrade + p.shadow));
    this.#labels.top.textContent = this.#language.text("admin.perSecond", { n: this.#language.compact(up) });
    this.#labels.bottom.textContent = this.#language.text("admin.perSecond", { n: this.#language.compact(down) });
    this.#mark(marks, x);
    this.#leave();
  }

  #mark(marks, x) {
    this.#marks.replaceChildren(...marks.map((m) => svg("path", { d: `M${x(m).toFixed(1)} 0V${this.#height}`, "vector-effect": "non-scaling-stroke", "data-by": m.by })));
    for (const old of this.element.querySelectorAll(".flag")) old.remove();
    for (const m of marks) {
      const flag = make("span", "flag", `v${m.version}`);
      flag.dataset.by = m.by;
      flag.style.left = `${Math.min(100, Math.max(0, x(m) / (WIDTH / 100)))}%`;
      this.element.querySelector(".plot").append(flag);
    }
  }

  #point(event, plot) {
    const box = plot.getBoundingClientRect();
    const { from, to } = this.#window;
    const at = from + ((event.clientX - box.left) / box.width) * (to - from);
    const point = nearest(this.#points, at);
    if (!point) return;
    this.#cursor.hidden = false;
    this.#cursor.style.left = `${((point.at - from) / (to - from)) * 100}%`;
    const ago = this.#language.text("admin.ago", { t: this.#language.duration(Math.max(1000, to - point.at)) });
    this.#read(point, ago);
  }

  #leave() {
    this.#cursor.hidden = true;
    this.#read(last(this.#points), this.#language.text("admin.now"));
  }

  /** The numbers of one instant, as text: what the picture says to those who can't see it. */
  #read(point, when) {
    const language = this.#language;
    const items = ["allow", "degrade", "reject", ...(this.#points.some((p) => p.shadow > 0) ? ["shadow"] : [])].map((part) => {
      const item = make("span", `key ${part}`);
      item.append(make("i"), language.text(`admin.part.${part}`), make("b", "number", point ? language.rate(point[part]) : "–"));
      return item;
    });
    this.#reading.replaceChildren(...items, make("span", "when soft", when));
    this.#picture.setAttribute("aria-label", this.#reading.textContent);
  }
}
