// Tiles: a name, a number, and the curve of its last values.

import { Series } from "../models/series.js";
import { make, svg } from "./dom.js";

const BOX = { width: 120, height: 36 };

export class Figures {
  #list;
  #language;
  #tiles = new Map();

  /** `names`: `[[word, tone]]`, in order. */
  constructor(list, names, { language, onLanguage }) {
    this.#list = list;
    this.#language = language;
    for (const [word, tone] of names) this.#add(word, tone);
    onLanguage(() => this.#name());
    this.#name();
  }

  /** Sets a number; `text` is how it is shown. */
  set(word, value, text) {
    this.#tiles.get(word).series.push(value);
    this.#draw(word, text);
  }

  /** Sets a number with all of its curve, oldest first. */
  fill(word, values, text) {
    this.#tiles.get(word).series.fill(values);
    this.#draw(word, text);
  }

  #draw(word, text) {
    const tile = this.#tiles.get(word);
    tile.number.textContent = text;
    const points = tile.series.points(BOX.width, BOX.height - 2);
    tile.line.setAttribute("points", points);
    const from = points.split(" ")[0].split(",")[0];
    tile.area.setAttribute("points", points ? `${from},${BOX.height} ${points} ${BOX.width},${BOX.height}` : "");
  }

  #add(word, tone) {
    const tile = make("div", "figure");
    tile.dataset.tone = tone;
    const name = make("dt");
    const number = make("dd", "number", "–");
    const picture = svg("svg", { viewBox: `0 0 ${BOX.width} ${BOX.height}`, preserveAspectRatio: "none", "aria-hidden": "true" });
    const area = svg("polygon");
    const line = svg("polyline");
    picture.append(area, line);
    tile.append(name, number, picture);
    this.#list.append(tile);
    this.#tiles.set(word, { name, number, line, area, series: new Series(120) });
  }

  #name() {
    for (const [word, tile] of this.#tiles) tile.name.textContent = this.#language.text(word);
  }
}
