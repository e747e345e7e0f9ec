// What went through over the last minutes, above the axis, and what did not, below it, to one scale, over the time of day.

import { nearest, niceTop, path, split, timeTicks } from "../../models/limits/scale.js";
import { make, svg } from "../dom.js";
import { last } from "../../models/older.js";

const WIDTH = 1000;

export class Chart {
  element = make("figure", "chart");
  #language;
  #height;
  #picture;
  #parts = {};
  #marks = svg("g", { class: "marks" });
  #labels;
  #reading = make("figcaption", "reading");
  #cursor = make("i", "cursor");
  #times = make("div", "times");
  #points = [];
  #window = { from: 0, to: 1 };

  /** `height` in pixels; `small` leaves out axis labels. */
  constructor(language, { height = 180, small = false } = {}) {
    this.#language = language;
    this.#height = height;
    this.element.style.setProperty("--chart-height", `${height}px`);
    if (small) this.element.classList.add("small");
    this.#picture = svg("svg", { viewBox: `0 0 ${WIDTH} ${height}`, preserveAspectRatio: "none", role: "img" });
    for (const part of ["allow", "line", "degrade", "reject", "shadow"]) {
      this.#parts[part] = svg("path", { class: part });
    }
    this.#parts.axis = svg("path", { class: "axis" });
    this.#picture.append(this.#marks, ...Object.values(this.#parts));
    this.#labels = { top: make("span", "tick top"), bottom: make("span", "tick bottom") };
    const plot = make("div", "plot");
    plot.append(this.#picture, this.#labels.top, this.#labels.bottom, this.#cursor);
    this.#cursor.hidden = true;
    this.element.append(this.#reading, plot, this.#times);
    plot.addEventListener("pointermove", (event) => this.#point(event, plot));
    plot.addEventListener("pointerleave", () => this.#leave());
  }

  show(points, marks, window) {
    this.#points = points;
    this.#window = window;
    const x = (p) => ((p.at - window.from) / (window.to - window.from)) * WIDTH;
    const lost = (p) => p.degrade + p.reject + p.shadow;
    const most = (of) => Math.max(0, ...points.map(of));
    const up = niceTop(most((p) => p.allow));
    const down = most(lost) > 0 ? niceTop(most(lost)) : 0;
    const { middle, above, below } = split(up, down, this.#height, 8);
    const curve = (y) => points.map((p) => [x(p), y(p)]);
    const area = (part, from, to) => {
      const back = path(curve(to).reverse()).replace("M", "L");
      this.#parts[part].setAttribute("d", points.length > 0 ? `${path(curve(from))}${back}Z` : "");
    };
    this.#parts.axis.setAttribute("d", `M0 ${middle}H${WIDTH}`);
    this.#parts.allow.setAttribute("d", path(curve((p) => above(p.allow)), middle));
    this.#parts.line.setAttribute("d", path(curve((p) => above(p.allow))));
    area("reject", () => middle, (p) => below(p.reject));
    area("degrade", (p) => below(p.reject), (p) => below(p.reject + p.degrade));
    area("shadow", (p) => below(p.reject + p.degrade), (p) => below(lost(p)));
    this.#labels.bottom.hidden = down === 0;
    this.#showTimes(window);
    this.#labels.top.textContent = this.#language.text("admin.perSecond", { n: this.#language.compact(up) });
    this.#labels.bottom.textContent = this.#language.text("admin.perSecond", { n: this.#language.compact(down) });
    this.#mark(marks, x);
    this.#leave();
  }

  #showTimes(window) {
    const { step, ticks } = this.#points.length > 0 ? timeTicks(window) : { step: 0, ticks: [] };
    const clock = new Intl.DateTimeFormat(this.#language.code, { hour: "2-digit", minute: "2-digit", ...(step < 60_000 && { second: "2-digit" }), hour12: false });
    this.#times.replaceChildren(...ticks.map((at) => {
      const label = make("span", "number", clock.format(at));
      const share = (at - window.from) / (window.to - window.from);
      label.style.left = `${share * 100}%`;
      label.toggleAttribute("data-end", share > 0.85);
      return label;
    }));
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
