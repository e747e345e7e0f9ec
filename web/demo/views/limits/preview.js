// What the draft would have done to the last minutes of traffic: asked by itself a moment after an edit.

import { readReport } from "../../models/limits/preview.js";
import { $, make } from "../dom.js";
import { drawReport, percent } from "./preview-bars.js";

const WAIT_MS = 600;

export class PreviewPanel {
  #calls;
  #page;
  #onFaults;
  #onState;
  #timer = 0;
  #asking = null;
  #state = { kind: "idle" };

  /** `onFaults` gets the server's faults of the draft, none when it has none; `onState` is told when the state is another. */
  constructor(calls, page, { onFaults, onState }) {
    this.#calls = calls;
    this.#page = page;
    this.#onFaults = onFaults;
    this.#onState = onState;
    page.onLanguage(() => this.#show());
    page.signal.addEventListener("abort", () => this.rest());
    this.#show();
  }

  /** "asking" while a preview is on its way; "unavailable" or "quiet" when there is none of this draft. */
  get kind() {
    return this.#state.kind;
  }

  /** Nothing is proposed. */
  rest() {
    clearTimeout(this.#timer);
    this.#asking?.abort();
    this.#set({ kind: "idle" });
  }

  /** The draft can't be asked about. */
  hold() {
    clearTimeout(this.#timer);
    this.#asking?.abort();
    this.#set({ ...this.#state, kind: "faults" });
  }

  /** Asks about `body` when nothing else comes for a moment. */
  ask(body) {
    clearTimeout(this.#timer);
    this.#asking?.abort();
    this.#set({ ...this.#state, kind: "asking" });
    this.#timer = setTimeout(() => this.#send(body), WAIT_MS);
  }

  async #send(body) {
    this.#asking = new AbortController();
    const { signal } = this.#asking;
    const answer = await this.#calls.preview(body, signal);
    if (signal.aborted || this.#page.signal.aborted) return;
    this.#onFaults(answer.status === 400 ? answer.body?.faults ?? [] : []);
    const report = answer.status === 200 ? readReport(answer.body) : null;
    if (answer.status === 400) this.#set({ kind: "faults" });
    else if (!report) this.#set({ kind: "unavailable", msg: answer.status === 503 ? "" : answer.body?.msg });
    else this.#set(report.messages === 0 ? { kind: "quiet" } : { kind: "report", report });
  }

  #set(state) {
    this.#state = state;
    this.#show();
    this.#onState();
  }

  #show() {
    const { kind, report } = this.#state;
    const { language } = this.#page;
    const t = (key, values) => language.text(`limits.preview.${key}`, values);
    const panel = $("preview");
    panel.dataset.state = kind;
    panel.setAttribute("aria-busy", String(kind === "asking"));
    $("preview-said").textContent = this.#head(t);
    const content = [];
    if (kind !== "report" && kind !== "asking") content.push(make("p", "quiet", t(kind)));
    if (report && (kind === "report" || kind === "asking")) content.push(...this.#notes(report, t), ...drawReport(report, language), ...fine(report, t));
    else if (kind === "asking") content.push(make("p", "quiet", t("asking")));
    $("preview-body").replaceChildren(...content);
  }

  #head(t) {
    const { report } = this.#state;
    if (!report) return "";
    const { language } = this.#page;
    return t("of", { t: language.duration(report.seconds * 1000), messages: language.compact(report.messages), users: language.compact(report.users) });
  }

  #notes(report, t) {
    const { language } = this.#page;
    const notes = [];
    const newly = report.newly.share > 0 ? t("newly", { share: percent(report.newly.share, language) }) : "";
    const join = (...texts) => texts.filter(Boolean).join(language.text("list.sentence"));
    if (report.override) notes.push(["bad", join(t("override"), newly)]);
    else if (report.warnings.length > 0) notes.push(["warn", join(t("warning"), newly)]);
    else if (newly) notes.push(["warn", newly]);
    if (report.few) notes.push(["", t("few")]);
    return notes.map(([tone, text]) => {
      const note = make("p", "note", text);
      note.dataset.tone = tone;
      return note;
    });
  }
}

function fine(report, t) {
  const out = [];
  if (report.unjudged.length > 0) out.push(t("unjudged", { list: report.unjudged.join(", ") }));
  out.push(report.sampled < 1 ? t("sampled", { share: `${Math.round(report.sampled * 100)}%` }) : t("whole"));
  return out.map((text) => make("p", "fine", text));
}
