// What the list would have caught of what was said in the last minutes: asked by itself a moment after a change.

import { wordFaults } from "../../models/lists/words.js";
import { portray } from "../../models/person.js";
import { $, make } from "../dom.js";

const WAIT_MS = 600;
const SHOWN = 12;

export class CaughtPanel {
  #calls;
  #page;
  #steps;
  #timer = 0;
  #asking = null;
  #state = { kind: "idle" };

  /** `steps`: `onFault(faults)` gets what the server says is wrong with the list, `onState(kind)` as for limits: idle, asking, faults, unavailable, report. */
  constructor(calls, page, steps) {
    this.#calls = calls;
    this.#page = page;
    this.#steps = steps;
    page.onLanguage(() => this.#show());
    page.signal.addEventListener("abort", () => this.#stop());
    $("words-preview-name").dataset.t = "words.preview.title";
    $("words-preview-name").textContent = page.language.text("words.preview.title");
    this.#show();
  }

  #stop() {
    clearTimeout(this.#timer);
    this.#asking?.abort();
  }

  rest() {
    this.#stop();
    this.#set({ kind: "idle" });
  }

  /** The list has a fault that this page knows of. */
  hold() {
    this.#stop();
    this.#set({ ...this.#state, kind: "faults" });
  }

  ask(list) {
    this.#stop();
    this.#set({ ...this.#state, kind: "asking" });
    this.#timer = setTimeout(() => this.#send(list), WAIT_MS);
  }

  async #send(list) {
    this.#asking = new AbortController();
    const { signal } = this.#asking;
    const { status, body } = await this.#calls.preview(list, signal);
    if (signal.aborted || this.#page.signal.aborted) return;
    this.#steps.onFault(status === 400 ? wordFaults(body) : []);
    if (status === 200) this.#set({ kind: "report", report: body });
    else this.#set({ kind: status === 400 ? "faults" : "unavailable" });
  }

  #set(state) {
    this.#state = state;
    this.#show();
    this.#steps.onState(state.kind);
  }

  #show() {
    const { kind, report } = this.#state;
    const { language } = this.#page;
    const t = (key, values) => language.text(`words.preview.${key}`, values);
    const panel = $("words-preview");
    panel.dataset.state = kind;
    panel.setAttribute("aria-busy", String(kind === "asking"));
    $("words-preview-said").textContent = report ? t("of", { caught: report.caught, looked: report.looked }) : "";
    const body = [];
    if (kind === "faults" || kind === "unavailable" || (kind === "asking" && !report)) body.push(make("p", "quiet", t(kind)));
    else if (report) body.push(...this.#report(report, t));
    $("words-preview-body").replaceChildren(...body);
  }

  #report({ looked, caught, actions, newest }, t) {
    const { language } = this.#page;
    if (looked === 0) return [make("p", "quiet", t("quiet"))];
    if (caught === 0) return [make("p", "note", t("none"))];
    const out = [];
    if (caught / looked >= 0.2 && looked >= 20) {
      out.push(make("p", "note", t("much", { share: Math.round((100 * caught) / looked) })));
      out[0].dataset.tone = "warn";
    }
    const sums = make("p", "sums");
    sums.append(...Object.entries(actions).filter(([, n]) => n > 0).map(([action, n]) => make("span", "tag", `${language.text(`words.actionOf.${action}`)} ${language.number(n)}`)));
    const list = make("ul", "caught");
    list.append(...newest.slice(0, SHOWN).map((c) => {
      const item = make("li");
      item.dataset.action = c.action;
      const why = make("small");
      why.append(make("bdi", "", portray(c.user).name), " · ", language.text(`words.actionOf.${c.action}`), " · ", make("bdi", "mono", c.word));
      item.append(make("bdi", "", c.action === "replace" ? c.shown : c.text), why);
      return item;
    }));
    out.push(sums, list);
    if (caught > SHOWN) out.push(make("p", "fine", language.text("words.more", { n: caught - SHOWN })));
    return out;
  }
}
