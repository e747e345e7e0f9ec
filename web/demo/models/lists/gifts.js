// The catalogue of gifts while it is changed.

import { diffRule } from "../limits/diff.js";
import { merge } from "../limits/draft.js";
import { copyOf, graphemes } from "../older.js";

export const MAX = { price: 100_000_000_000, icon: 256, name: 32 };

const long = (text) => [...graphemes(text)].length > MAX.name;

export class GiftDraft {
  #base;
  #entries = [];
  #next = 1;

  /** `base` is what is in force: `{version, gifts: [{id, name, names, price, icon}]}`. */
  constructor(base) {
    this.#base = base;
    this.reset();
  }

  get base() {
    return this.#base;
  }

  reset() {
    this.#entries = this.#base.gifts.map((g) => ({ key: this.#next++, gift: copyOf(g), was: g }));
  }

  /** `[{key, gift, was}]` in order; `was` is null for a new one. */
  get entries() {
    return this.#entries;
  }

  get gifts() {
    return this.#entries.map((e) => e.gift);
  }

  entry(key) {
    return this.#entries.find((e) => e.key === key);
  }

  keyAt(index) {
    return this.#entries[index]?.key ?? null;
  }

  get dirty() {
    return JSON.stringify(this.gifts.map(tidy)) !== JSON.stringify(this.#base.gifts.map(tidy));
  }

  /** Changes by gift and field, as a history tells them. */
  changes() {
    const was = new Map(this.#base.gifts.map((g) => [g.id, g]));
    const is = new Map(this.gifts.map((g) => [g.id, g]));
    return [...new Set([...was.keys(), ...is.keys()])].sort().flatMap((id) => {
      const [before, after] = [was.get(id), is.get(id)].map((g) => g && tidy(g));
      if (!before || !after) return [{ rule: id, before, after }];
      return diffRule({ ...before, id: undefined }, { ...after, id: undefined }).concat(before.name === after.name ? [] : [{ field: "name", before: before.name, after: after.name }])
        .map((c) => ({ rule: id, ...c }));
    });
  }

  get changed() {
    return new Set(this.changes().map((c) => c.rule)).size || 1; // the order alone is one
  }

  /** Puts a value at a path: `price`, `names.zh`. An empty one goes. */
  set(key, path, value) {
    const { gift } = this.entry(key);
    const [field, lang] = path.split(".");
    if (lang === undefined) gift[field] = value;
    else gift.names = { ...gift.names, [lang]: value };
  }

  /** Adds a gift at the end and returns its key. */
  add() {
    const taken = new Set(this.gifts.map((g) => g.id));
    let n = this.#entries.length + 1;
    while (taken.has(`gift-${n}`)) n++;
    const entry = { key: this.#next++, gift: { id: `gift-${n}`, name: "", names: {}, price: 1, icon: "🎁" }, was: null };
    this.#entries.push(entry);
    return entry.key;
  }

  remove(key) {
    this.#entries = this.#entries.filter((e) => e.key !== key);
  }

  /** Moves a gift one place to the front. */
  forward(key) {
    const at = this.#entries.findIndex((e) => e.key === key);
    if (at > 0) this.#entries.splice(at - 1, 2, this.#entries[at], this.#entries[at - 1]);
  }

  /** Puts these changes on top of a catalogue that somebody else put in force meanwhile; what both changed stays as it is here. */
  rebase(base) {
    const named = (gifts) => gifts.map(tidy).map(({ id, name, ...rest }) => ({ name: id, title: name, ...rest }));
    const { rules } = merge(named(this.#base.gifts), named(this.gifts), named(base.gifts));
    const was = new Map(base.gifts.map((g) => [g.id, g]));
    this.#base = base;
    this.#entries = rules.map(({ name, title, ...rest }) => ({ key: this.#next++, gift: { id: name, name: title, ...rest }, was: was.get(name) ?? null }));
  }

  /** What is wrong before the server has seen it: `[{index, field, code, values}]`. */
  faults() {
    const ids = this.gifts.map((g) => g.id);
    return this.gifts.flatMap(({ id, name, names, price, icon }, index) => {
      const bad = (field, code, values = {}) => ({ index, field, code, values });
      const out = [];
      if (!/^[\w-]{1,64}$/.test(id)) out.push(bad("id", "id"));
      else if (ids.indexOf(id) !== index) out.push(bad("id", "taken", { name: id }));
      if (!Number.isInteger(price) || price < 1 || price > MAX.price) out.push(bad("price", "range", { least: 1, most: MAX.price }));
      if (name === "" || long(name)) out.push(bad("name", "giftName"));
      for (const [lang, text] of Object.entries(names ?? {})) if (long(text)) out.push(bad(`names.${lang}`, "giftName"));
      if (new TextEncoder().encode(icon ?? "").length > MAX.icon) out.push(bad("icon", "icon", { most: MAX.icon }));
      return out;
    });
  }
}

/** A gift without what is empty, as it is sent. */
export function tidy({ id, name, names, price, icon }) {
  const given = Object.entries(names ?? {}).filter(([, text]) => text !== "").sort();
  return { id, name, ...(given.length > 0 && { names: Object.fromEntries(given) }), price, ...(icon && { icon }) };
}
