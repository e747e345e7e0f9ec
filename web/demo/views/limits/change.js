// The side of the desk: what would change, why, and the way to put it in force.

import { isolate } from "../../models/language.js";
import { MAX } from "../../models/limits/vocabulary.js";
import { $, aria, make } from "../dom.js";
import { changeList, timeText } from "./values.js";

export class ChangePanel {
  #page;
  #busy = false;
  #seen = "idle";

  /** `steps`: `{publish(), reset()}`. */
  constructor(page, steps) {
    this.#page = page;
    const { signal } = page;
    $("publish").addEventListener("click", () => steps.publish(), { signal });
    $("reset").addEventListener("click", () => steps.reset(), { signal });
    $("note").addEventListener("input", () => this.#check(), { signal });
  }

  get note() {
    return $("note").value.trim();
  }

  set note(text) {
    $("note").value = text;
    this.#check();
  }

  set busy(busy) {
    this.#busy = busy;
    aria($("publish"), "busy", String(busy));
    this.#check();
  }

  /** What is known of the draft's preview: publishing waits for it, or says that there is none. */
  seen(kind) {
    this.#seen = kind;
    const { language } = this.#page;
    const word = { unavailable: "limits.unseen", quiet: "limits.unseenQuiet" }[kind];
    $("unseen").hidden = !word;
    $("unseen").textContent = word ? language.text(word) : "";
    $("publish").textContent = language.text(kind === "asking" ? "limits.publishWaits" : word ? "limits.publishUnseen" : "limits.publish");
    this.#check();
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
    this.seen(this.#seen);
  }

  /** Says how it went. */
  say(text, tone = "") {
    const said = $("said");
    said.textContent = text;
    said.dataset.tone = tone;
    said.hidden = text === "";
  }

  #check() {
    const long = new TextEncoder().encode(this.note).length > MAX.noteBytes;
    $("note").setAttribute("aria-invalid", String(long));
    $("publish").disabled = this.#busy || this.#off || long || this.#seen === "asking";
  }
}

/** Who made a version, when and why. */
export function byLine({ kind, author, note, time, at = Date.parse(time) }, language) {
  const line = language.text("limits.by", { kind: language.text(`limits.kindOf.${kind}`), author, when: timeText(at, language) });
  return note ? `${line} · ${isolate(note)}` : line;
}
