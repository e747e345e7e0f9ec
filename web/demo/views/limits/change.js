// The side of the desk: what would change, why, and the way to put it in force.

import { isolate } from "../../models/language.js";
import { MAX } from "../../models/limits/vocabulary.js";
import { $, aria, make } from "../dom.js";
import { button } from "./controls.js";
import { timeText } from "./values.js";

export class ChangePanel {
  #page;
  #of;
  #at;
  #busy = false;
  #seen = "idle";

  /** `steps`: `{publish(), reset()}`. `of` is what is changed: limits, words or gifts. */
  constructor(page, steps, of = "limits") {
    this.#page = page;
    this.#of = of;
    this.#at = partsOf(of);
    const { signal } = page;
    const $ = this.#at;
    $("publish").addEventListener("click", () => steps.publish(), { signal });
    $("reset").addEventListener("click", () => steps.reset(), { signal });
    $("note").addEventListener("input", () => this.#check(), { signal });
  }

  get note() {
    return this.#at("note").value.trim();
  }

  set note(text) {
    this.#at("note").value = text;
    this.#check();
  }

  #t(key, values) {
    return wordOf(this.#of, key, this.#page.language, values);
  }

  set busy(busy) {
    this.#busy = busy;
    aria(this.#at("publish"), "busy", String(busy));
    this.#check();
  }

  /** What is known of the draft's preview: publishing waits for it, or says that there is none. */
  seen(kind) {
    this.#seen = kind;
    const $ = this.#at;
    const word = { unavailable: "unseen", quiet: "unseenQuiet" }[kind];
    $("unseen").hidden = !word;
    $("unseen").textContent = word ? this.#t(word) : "";
    $("publish").textContent = this.#t(kind === "asking" ? "publishWaits" : word ? "publishUnseen" : "publish");
    this.#check();
  }

  #off = true;

  /** `draft` is `{dirty, base, changed}`: how many things differ; `list` makes a node that tells which. */
  show({ dirty, base, changed }, list, { count, others }, readOnly = false) {
    const { language } = this.#page;
    const $ = this.#at;
    const t = (key, values) => this.#t(key, values);
    $("change-title").textContent = dirty ? t("changed", { n: changed }) : t(base.version === undefined ? "roomInForce" : "inForce", { version: base.version });
    $("change-by").textContent = dirty ? t("onVersion", { version: base.version }) : base.time ? byLine(base, language) : "";
    $("changes").replaceChildren(dirty ? list() : make("p", "quiet", t(readOnly ? "fileSource" : "clean")));
    $("reset").hidden = !dirty;
    $("publishing").hidden = !dirty;
    $("publish-faults").replaceChildren(...[count > 0 ? t("faults", { n: count }) : "", ...others].filter(Boolean).map((text) => make("p", "fault", text)));
    this.#off = !dirty || count > 0 || readOnly;
    this.seen(this.#seen);
  }

  /** Says how it went; `undo` takes it back. */
  say(text, tone = "", undo = null) {
    const said = this.#at("said");
    said.textContent = text;
    if (undo) said.append(" ", button(this.#t("undo"), "link", undo));
    said.dataset.tone = tone;
    said.hidden = text === "";
  }

  #check() {
    const $ = this.#at;
    const long = new TextEncoder().encode(this.note).length > MAX.noteBytes;
    $("note").setAttribute("aria-invalid", String(long));
    $("publish").disabled = this.#busy || this.#off || long || this.#seen === "asking";
  }
}

/** Finds the parts of the page that are about `of`: those of the limits came first and have bare names. */
export const partsOf = (of) => (id) => $(of === "limits" ? id : `${of}-${id}`);

/** A word about `of`; those of the limits do for all that has none of its own. */
export function wordOf(of, key, language, values) {
  const own = `${of}.${key}`;
  return language.text(language.has(own) ? own : `limits.${key}`, values);
}

/** Who made a version, when and why. */
export function byLine({ kind, author, note, time, at = Date.parse(time) }, language) {
  const line = language.text("limits.by", { kind: language.text(`limits.kindOf.${kind}`), author, when: timeText(at, language) });
  return note ? `${line} · ${isolate(note)}` : line;
}
