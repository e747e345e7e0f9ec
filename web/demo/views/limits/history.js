// The versions of the limits: who, when, why, what changed, and the way back.

import { readVersions } from "../../models/limits/history.js";
import { make } from "../dom.js";
import { byLine, partsOf, wordOf } from "./change.js";
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
  #of;
  #tell;
  #at;
  #more = false;
  #current = null;
  #opened = new Set();
  /** The version that the sentence at the head is about. */
  #saidOf = null;

  /**
   * `steps`: `{restored(set), propose(rules, note)}`; without `propose`, what is older has no content here, and going back is not asked
   * about. `of` is whose history it is, and `tell(changes, language)` makes a node of a version's changes.
   */
  constructor(calls, page, steps, of = "limits", tell = changeList) {
    this.#calls = calls;
    this.#page = page;
    this.#steps = steps;
    this.#of = of;
    this.#tell = tell;
    this.#at = partsOf(of);
    this.#at("older").addEventListener("click", () => this.#load(last(this.#versions)?.version), { signal: page.signal });
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
    return wordOf(this.#of, key, this.#page.language, values);
  }

  #say(text, tone) {
    const $ = this.#at;
    $("history-said").textContent = text;
    $("history-said").dataset.tone = tone;
    $("history-said").hidden = text === "";
  }

  #show() {
    const $ = this.#at;
    const now = this.#versions.find((v) => v.version === this.#current);
    const head = now && this.#of === "limits"; // the others have it beside their list
    $("history-name").textContent = head ? this.#t("inForce", { version: now.version }) : this.#t("history");
    $("history-by").textContent = head ? byLine(now, this.#page.language) : "";
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
    return make("span", "size soft", v.changes === null ? "" : this.#t("rulesChanged", { n: v.changed }));
  }

  #body(v) {
    const body = make("div", "body");
    body.append(v.changed > 0 ? this.#tell(v.changes, this.#page.language) : make("p", "quiet", this.#t(v.changes === null ? "firstVersion" : "noChange")));
    const { propose } = this.#steps;
    if (v.version !== this.#current && (!propose || v.rules.length > 0)) {
      const foot = make("div", "foot");
      foot.append(button(this.#t("goBack", { version: v.version }), "button quiet small", () => (propose ? this.#ask(v) : this.goBack(v.version))));
      if (propose) foot.append(button(this.#t("openDraft"), "link", () => propose(v.rules, this.#t("backNote", { version: v.version }))));
      body.append(foot);
    }
    return body;
  }

  async #ask(v) {
    const { language, signal } = this.#page;
    const now = this.#versions.find((x) => x.version === this.#current);
    const draft = new Draft({ version: this.#current, rules: now?.rules ?? [] });
    draft.replace(v.rules);
    const changes = draft.changes();
    const content = [make("p", "", this.#t("goBackAsk", { version: v.version, current: this.#current })), changes.length > 0 ? changeList(changes, language) : make("p", "quiet", this.#t("noChange"))];
    const answer = await confirm({ title: this.#t("goBackTitle", { version: v.version }), content, action: this.#t("goBackGo"), note: this.#t("backNote", { version: v.version }) }, signal);
    if (answer) await this.goBack(v.version, answer.note);
  }

  /** Puts an older version in force again. */
  async goBack(version, note = this.#t("backNote", { version })) {
    const { signal } = this.#page;
    const { status, body } = await this.#calls.rollback(version, this.#current, note);
    if (signal.aborted) return;
    if (status === 200) {
      this.#saidOf = body.version;
      this.#say(this.#t("wentBack", { version: body.version, restores: version }), "good");
      this.#steps.restored(body);
    } else {
      this.#say(status === 412 ? this.#t("overtakenHistory") : body?.msg ?? this.#t("lost"), "bad");
    }
    await this.refresh(null);
  }
}
