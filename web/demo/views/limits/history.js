// The versions of the limits: who, when, why, what changed, and the way back.

import { canRestore, readVersions } from "../../models/limits/history.js";
import { $, make } from "../dom.js";
import { byLine } from "./change.js";
import { confirm } from "./confirm.js";
import { button } from "./controls.js";
import { changeList, timeText } from "./values.js";
import { Draft } from "../../models/limits/draft.js";
import { last } from "../../models/older.js";

const PAGE = 20;

export class HistoryView {
  #calls;
  #page;
  #steps;
  #versions = [];
  #more = false;
  #current = null;
  #opened = new Set();
  /** The version that the sentence at the head is about. */
  #saidOf = null;

  /** `steps`: `{restored(set), propose(rules, note)}`. */
  constructor(calls, page, steps) {
    this.#calls = calls;
    this.#page = page;
    this.#steps = steps;
    $("older").addEventListener("click", () => this.#load(last(this.#versions)?.version), { signal: page.signal });
    page.onLanguage(() => this.#show());
  }

  async refresh(current = this.#current) {
    this.#current = current;
    await this.#load();
  }

  async #load(before = null) {
    const { status, body } = await this.#calls.versions(before, PAGE);
    if (this.#page.signal.aborted) return;
    if (status !== 200) return this.#say(body?.msg ?? this.#t("lost"), "bad");
    const page = readVersions(body);
    this.#versions = before === null ? page : [...this.#versions, ...page];
    this.#more = page.length === PAGE;
    if (before === null) {
      const current = page[0]?.version ?? this.#current;
      if (current !== this.#current && this.#saidOf !== current) this.#say("");
      this.#current = current;
    }
    this.#show();
  }

  #t(key, values) {
    return this.#page.language.text(`limits.${key}`, values);
  }

  #say(text, tone) {
    $("history-said").textContent = text;
    $("history-said").dataset.tone = tone;
    $("history-said").hidden = text === "";
  }

  #show() {
    const now = this.#versions.find((v) => v.version === this.#current);
    $("history-name").textContent = now ? this.#t("inForce", { version: now.version }) : this.#t("history");
    $("history-by").textContent = now ? byLine(now, this.#page.language) : "";
    $("versions").replaceChildren(...this.#versions.map((v) => this.#item(v)));
    $("older").hidden = !this.#more;
    $("versions-none").hidden = this.#versions.length > 0;
  }

  #item(v) {
    const { language } = this.#page;
    const item = make("li", "version");
    item.dataset.kind = v.kind;
    if (v.version === this.#current) item.dataset.current = "";
    const details = make("details");
    details.open = this.#opened.has(v.version);
    details.addEventListener("toggle", () => (details.open ? this.#opened.add(v.version) : this.#opened.delete(v.version)));
    const summary = make("summary");
    summary.append(make("span", "number id", String(v.version)), this.#kind(v), make("bdi", "who", v.author), this.#note(v), this.#size(v));
    const time = make("time", "soft number", timeText(v.at, language));
    time.dateTime = new Date(v.at).toISOString();
    summary.append(time);
    details.append(summary, this.#body(v));
    item.append(details);
    return item;
  }

  #kind(v) {
    const kind = make("span", "kind", v.restores ? this.#t("restores", { kind: this.#t(`kindOf.${v.kind}`), version: v.restores }) : this.#t(`kindOf.${v.kind}`));
    kind.dataset.kind = v.kind;
    return kind;
  }

  #note(v) {
    const note = make("span", "why");
    note.append(make("bdi", "", v.note));
    if (v.override) note.append(make("span", "tag warn", this.#t("overridden")));
    if (v.watch) note.append(make("span", v.watch === "kept" ? "tag good" : "tag warn", this.#t(`watch.${v.watch}`)));
    if (v.version === this.#current) note.prepend(make("span", "tag good", this.#t("current")));
    return note;
  }

  #size(v) {
    const n = new Set((v.changes ?? []).map((c) => c.rule)).size;
    return make("span", "size soft", v.changes === null ? "" : this.#t("rulesChanged", { n }));
  }

  #body(v) {
    const body = make("div", "body");
    body.append(v.changes?.length > 0 ? changeList(v.changes, this.#page.language) : make("p", "quiet", this.#t(v.changes === null ? "firstVersion" : "noChange")));
    if (canRestore(v, this.#current)) {
      const foot = make("div", "foot");
      foot.append(button(this.#t("goBack", { version: v.version }), "button quiet small", () => this.#goBack(v)),
        button(this.#t("openDraft"), "link", () => this.#steps.propose(v.rules, this.#t("backNote", { version: v.version }))));
      body.append(foot);
    }
    return body;
  }

  async #goBack(v) {
    const { language, signal } = this.#page;
    const now = this.#versions.find((x) => x.version === this.#current);
    const draft = new Draft({ version: this.#current, rules: now?.rules ?? [] });
    draft.replace(v.rules);
    const changes = draft.changes();
    const content = [make("p", "", this.#t("goBackAsk", { version: v.version, current: this.#current })), changes.length > 0 ? changeList(changes, language) : make("p", "quiet", this.#t("noChange"))];
    const answer = await confirm({ title: this.#t("goBackTitle", { version: v.version }), content, action: this.#t("goBackGo"), note: this.#t("backNote", { version: v.version }) }, signal);
    if (!answer) return;
    const { status, body } = await this.#calls.rollback(v.version, this.#current, answer.note);
    if (signal.aborted) return;
    if (status === 200) {
      this.#saidOf = body.version;
      this.#say(this.#t("wentBack", { version: body.version, restores: v.version }), "good");
      this.#steps.restored(body);
    } else {
      this.#say(status === 412 ? this.#t("overtakenHistory") : body?.msg ?? this.#t("lost"), "bad");
    }
    await this.refresh(null);
  }
}
