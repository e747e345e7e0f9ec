// A small picture of the last minutes: what went through above, what did not below.

import { path, split } from "../../models/limits/scale.js";
import { svg } from "../dom.js";

const BOX = { width: 76, height: 24 };

export class Spark {
  element = svg("svg", { class: "spark", viewBox: `0 0 ${BOX.width} ${BOX.height}`, preserveAspectRatio: "none", "aria-hidden": "true" });
  #axis = svg("path", { class: "axis" });
  #allow = svg("path", { class: "allow" });
  #lost = svg("path", { class: "lost" });

  constructor() {
    this.element.append(this.#axis, this.#allow, this.#lost);
  }

  show(points, { from, to }) {
    const x = (p) => ((p.at - from) / (to - from)) * BOX.width;
    const lost = (p) => p.degrade + p.reject + p.shadow;
    const most = (of) => Math.max(0, ...points.map(of));
    const { middle, above, below } = split(most((p) => p.allow), most(lost), BOX.height);
    this.#axis.setAttribute("d", `M0 ${middle}H${BOX.width}`);
    this.#allow.setAttribute("d", path(points.map((p) => [x(p), above(p.allow)]), middle));
    this.#lost.setAttribute("d", path(points.map((p) => [x(p), below(lost(p))]), middle));
  }
}
