// Banners of gifts on the stage: one per giver and gift, which counts up while
// the combo lasts.

import { Combos } from "../models/combo.js";
import { portray } from "../models/person.js";
import { dressGift, giftName } from "./gift-face.js";
import { dressFace, frames, make } from "./dom.js";

const SLOTS = { wide: 3, narrow: 2 };

export class Banners {
  #list;
  #language;
  #giftOf;
  #combos;
  #nodes = new Map();
  #wake;

  /** `giftOf(id)` finds a gift of the catalogue. */
  constructor(list, giftOf, { language, signal }) {
    this.#list = list;
    this.#giftOf = giftOf;
    this.#language = language;
    const narrow = matchMedia("(max-width: 960px)");
    this.#combos = new Combos(narrow.matches ? SLOTS.narrow : SLOTS.wide);
    narrow.addEventListener("change", () => { this.#combos.slots = narrow.matches ? SLOTS.narrow : SLOTS.wide; }, { signal });
    this.#wake = frames(() => this.#draw(), signal);
  }

  gift(event, worth) {
    if (document.hidden) return;
    this.#combos.gift(event, worth, performance.now());
    this.#wake();
  }

  #draw() {
    const shown = this.#combos.at(performance.now());
    for (const [key, view] of this.#nodes) if (!shown.some((b) => b.key === key)) this.#leave(key, view);
    for (const banner of shown) {
      const view = this.#nodes.get(banner.key) ?? this.#enter(banner);
      if (view.total !== banner.total) this.#count(view, banner);
    }
    return !this.#combos.empty;
  }

  #enter(banner) {
    const node = make("li", "banner");
    const person = portray(banner.user);
    const gift = this.#giftOf(banner.gift);
    const words = make("span", "words");
    words.append(make("bdi", "", person.name), make("span", "", `${this.#language.text("gift.sent")} ${giftName(gift, this.#language)}`));
    const times = make("span", "times");
    node.append(dressFace(make("span"), person), words, dressGift(gift), times);
    const view = { node, times, total: 0 };
    this.#nodes.set(banner.key, view);
    this.#list.append(node);
    node.animate([{ transform: "translateX(-110%)", opacity: 0 }, { transform: "none", opacity: 1 }], { duration: 420, easing: "cubic-bezier(0.2, 0.9, 0.25, 1)" });
    return view;
  }

  #count(view, banner) {
    view.total = banner.total;
    view.node.dataset.worth = banner.worth >= 300 ? 3 : banner.worth >= 60 ? 2 : 1;
    view.times.replaceChildren(make("small", "", "×"), String(banner.total));
    view.times.animate([{ transform: "scale(2.1)", opacity: 0.4 }, { transform: "scale(0.9)", opacity: 1, offset: 0.6 }, { transform: "none" }], { duration: 320, easing: "cubic-bezier(0.2, 0, 0.1, 1)" });
  }

  #leave(key, { node }) {
    this.#nodes.delete(key);
    const motion = node.animate([{ opacity: 1, transform: "none" }, { opacity: 0, transform: "translateY(-14px)" }], { duration: 260, fill: "forwards" });
    motion.onfinish = () => node.remove();
  }
}
