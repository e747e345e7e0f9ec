// The side of the desk: what would change, why, and the way to put it in force.

import { isolate } from "../../models/language.js";
import { MAX } from "../../models/limits/vocabulary.js";
import { $, make } from "../dom.js";
import { changeList, timeText } from "./values.js";

export class ChangePanel {
  #page;
  #busy = false;

  /** `steps`: `{publish(), reset()}`. */
  constructor(page, steps) {
    this.#page = page;
    const { signal } = page;
    $("publish").addEventListener("click", () => steps.publish(), { signal });
    $("reset").addEventListener("click", () => steps.reset(), { signal });
    $("note").addEventListener("input", () => this.#checkNote(), { signal });
  }

  get note() {
    return $("note").value.trim();
  }

  set note(text) {
    $("note").value = text;
    this.#checkNote();
  }

  set busy(busy) {
    this.#busy = busy;
    $("publish").disabled = busy || this.#off;
    $("publish").setAttribute("aria-busy", String(busy));
  }

  #off = true;

  show(draft, { count, others }, readOnly) {
    const { language } = this.#page;
    const t = (key, values) => language.text(`limits.${key}`, values);
    const { dirty } = draft;
    const changes = draft.changes();
    const rules = new Set(changes.map((c) => c.rule)).size;
    $("change-title").textContent = dirty ? t("changed", { n: rules }) : t("inForce", { version: draft.base.version });
    $("change-by").textContent = dirty ? t("onVersion", { version: draft.base.version }) : byLine(draft.base, language);
    $("changes").replaceChildren(dirty ? changeList(changes, language) : make("p", "quiet", t(readOnly ? "fileSource" : "clean")));
    $("reset").hidden = !dirty;
    $("publishing").hidden = !dirty;
    $("publish-faults").replaceChildren(...[count > 0 ? t("faults", { n: count }) : "", ...others].filter(Boolean).map((text) => make("p", "fault", text)));
    this.#off = !dirty || count > 0 || readOnly;
    this.#checkNote();
  }

  /** Says how it went. */
  say(text, tone = "") {
    const said = $("said");
    said.textContent = text;
    said.dataset.tone = tone;
    said.hidden = text === "";
  }

  #checkNote() {
    const long = new TextEncoder().encode(this.note).length > MAX.noteBytes;
    $("note").setAttribute("aria-invalid", String(long));
    $("publish").disabled = this.#busy || this.#off || long;
  }
}

/** Who made a version, when and why. */
export function byLine({ kind, author, note, time }, language) {
  const line = language.text("limits.by", { kind: language.text(`limits.kindOf.${kind}`), author, when: timeText(Date.parse(time), language) });
  return note ? `${line} · ${isolate(note)}` : line;
}
