// A small picture of the last minutes: what went through above, what did not below, each to its own scale.

import { path, runs } from "../../models/limits/scale.js";
import { svg } from "../dom.js";

const BOX = { width: 76, height: 24, middle: 15 };

export class Spark {
  element = svg("svg", { class: "spark", viewBox: `0 0 ${BOX.width} ${BOX.height}`, preserveAspectRatio: "none", "aria-hidden": "true" });
  #allow = svg("path", { class: "allow" });
  #lost = svg("path", { class: "lost" });

  constructor() {
    this.element.append(svg("path", { class: "axis", d: `M0 ${BOX.middle}H${BOX.width}` }), this.#allow, this.#lost);
  }

  show(points, { from, to }) {
    const x = (p) => ((p.at - from) / (to - from)) * BOX.width;
    const top = Math.max(1e-9, ...points.map((p) => p.allow));
    const lost = (p) => p.degrade + p.reject + p.shadow;
    const most = Math.max(1e-9, ...points.map(lost));
    this.#allow.setAttribute("d", runs(points, x, (p) => BOX.middle - (p.allow / top) * (BOX.middle - 1)).map((r) => path(r, BOX.middle)).join(""));
    this.#lost.setAttribute("d", runs(points, x, (p) => BOX.middle + (lost(p) / most) * (BOX.height - BOX.middle - 1)).map((r) => path(r, BOX.middle)).join(""));
  }
}
