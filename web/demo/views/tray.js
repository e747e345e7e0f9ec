// The gift tray: the room's catalogue and how many at once.

import { dressGift, giftName } from "./gift-face.js";
import { $, aria, make, radios } from "./dom.js";

/** What the tray says about who pays. */
const NOTES = { open: "gift.free", backend: "gift.byBackend" };

const COUNTS = ["1", "5", "10", "66"];

export class Tray {
  #language;
  #onGive;
  #gifts = [];
  #known = new Map(); // also those that were taken away: the chat still tells of them
  #count = 1;
  #off = false;
  #by = "";

  /** `onGive(gift, count)`. */
  constructor({ language, signal, onLanguage, onGive }) {
    this.#language = language;
    this.#onGive = onGive;
    radios($("many"), "many", COUNTS, "1", (count) => make("span", "number", count), (count) => { this.#count = Number(count); }, signal);
    onLanguage(() => this.#draw());
    this.#setUpSheet(signal);
  }

  /** Takes the catalogue and who pays, as a welcome names them; an event tells of the former alone. */
  take({ gifts = [], gift_authority: by = this.#by }) {
    if (by === this.#by && JSON.stringify(gifts) === JSON.stringify(this.#gifts)) return;
    this.#gifts = gifts;
    this.#by = by;
    for (const gift of gifts) this.#known.set(gift.id, gift);
    this.#draw();
  }

  /** Whether gifts can't be given now. */
  set off(off) {
    this.#off = off;
    for (const button of $("gifts").querySelectorAll("button")) button.disabled = this.#shut;
  }

  get #shut() { return this.#off || this.#by === "backend"; }

  /** The catalogue's entry, the last one that it had, or one that only has its id. */
  find(id) {
    return this.#known.get(id) ?? { id, name: id, price: 0 };
  }

  #draw() {
    const at = document.activeElement?.dataset.gift;
    $("gifts").replaceChildren(...this.#gifts.map((gift) => {
      const item = make("li");
      const button = make("button", "present");
      const name = giftName(gift, this.#language);
      button.type = "button";
      button.dataset.gift = gift.id;
      button.disabled = this.#shut;
      button.append(dressGift(gift), make("span", "only-read", this.#language.text("gift.give")), make("span", "name", name), make("span", "price number", this.#language.number(gift.price)));
      button.addEventListener("click", () => this.#onGive(gift, this.#count));
      item.append(button);
      return item;
    }));
    if (at) $("gifts").querySelector(`[data-gift="${at}"]`)?.focus({ preventScroll: true });
    const note = NOTES[this.#by];
    $("tray-note").hidden = !note;
    $("tray-note").textContent = note ? this.#language.text(note) : "";
  }

  /** On a phone the tray is a sheet that comes up. */
  #setUpSheet(signal) {
    const open = (wanted) => {
      $("tray").toggleAttribute("data-open", wanted);
      aria($("gift-open"), "expanded", String(wanted));
    };
    $("gift-open").addEventListener("click", () => {
      open(!$("tray").hasAttribute("data-open"));
      $("gifts").querySelector("button")?.focus({ preventScroll: true });
    }, { signal });
    document.addEventListener("pointerdown", (event) => {
      if (!$("tray").contains(event.target) && !$("gift-open").contains(event.target)) open(false);
    }, { signal });
    $("tray").addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      open(false);
      $("gift-open").focus();
    }, { signal });
  }
}
