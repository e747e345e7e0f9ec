// Words in the reader's language.

/** The language to start with: the chosen one, else the first the reader prefers that exists, else English. */
export function chooseLanguage(chosen, preferred, known) {
  if (known.includes(chosen)) return chosen;
  for (const tag of preferred ?? []) {
    const code = [tag, tag.toLowerCase().split("-")[0]].find((c) => known.includes(c));
    if (code) return code;
  }
  return "en";
}

export class Language {
  #tables;
  #code;
  #plural;
  #whole;
  #compact;

  /** `tables` maps codes to words by key. */
  constructor(tables, code) {
    this.#tables = tables;
    this.code = code;
  }

  /** All languages there are. */
  get codes() {
    return Object.keys(this.#tables);
  }

  get code() {
    return this.#code;
  }

  set code(code) {
    this.#code = code;
    this.#plural = new Intl.PluralRules(code);
    this.#whole = new Intl.NumberFormat(code);
    this.#compact = new Intl.NumberFormat(code, { notation: "compact", maximumFractionDigits: 1 });
  }

  /** The text of `key` with `{name}` filled in; the key itself where there is none. */
  text(key, values = {}) {
    const table = this.#tables[this.#code];
    const counted = typeof values.n === "number" ? table[`${key}_${this.#plural.select(values.n)}`] : undefined;
    const text = counted ?? table[key] ?? key;
    return text.replace(/\{(\w+)\}/g, (_, name) => this.#value(values[name]));
  }

  /** The text of `key` in a language that need not be the one spoken. */
  textIn(code, key) {
    return this.#tables[code][key];
  }

  has(key) {
    return this.#tables[this.#code][key] !== undefined;
  }

  number(value) {
    return this.#whole.format(value);
  }

  /** 12,345 as 12.3K or 1.2万. */
  compact(value) {
    return value < 10_000 ? this.#whole.format(value) : this.#compact.format(value);
  }

  /** A rate: one decimal below ten. */
  rate(value) {
    return value > 0 && value < 10 ? value.toFixed(1) : this.compact(Math.round(value));
  }

  /** A wait in words, rounded up so that it never promises too much. */
  duration(ms) {
    const s = Math.max(1, Math.ceil(ms / 1000));
    if (s < 120) return this.text("time.s", { n: s });
    if (s < 7200) return this.text("time.m", { n: Math.ceil(s / 60) });
    return this.text("time.h", { n: Math.ceil(s / 3600) });
  }

  /** A time of day; a dash for none. */
  clock(ms) {
    return ms > 0 ? new Intl.DateTimeFormat(this.#code, { hour: "2-digit", minute: "2-digit" }).format(ms) : "–";
  }

  #value(value) {
    return typeof value === "number" ? this.#whole.format(value) : isolate(String(value ?? ""));
  }
}

/** Letters written from right to left, and what makes others so. */
const RIGHT_TO_LEFT = /[\u0590-\u08ff\u200f\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;

/** A text that can stand in a sentence without turning the words around it (UAX #9: first strong isolate). */
export function isolate(text) {
  return RIGHT_TO_LEFT.test(text) ? `\u2068${text}\u2069` : text;
}
