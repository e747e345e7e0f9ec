// The limits desk: the draft and everything that is shown of it.

import { check } from "../../models/limits/check.js";
import { confirmation } from "../../models/limits/confirmation.js";
import { Draft } from "../../models/limits/draft.js";
import { gather } from "../../models/limits/faults.js";
import { readReport } from "../../models/limits/preview.js";
import { actionName } from "../../models/limits/sentence.js";
import { ACTIONS } from "../../models/limits/vocabulary.js";
import { $, make } from "../dom.js";
import { ChangePanel, byLine } from "./change.js";
import { confirm, paragraphs } from "./confirm.js";
import { GuardStrip } from "./guard.js";
import { PreviewPanel } from "./preview.js";
import { drawReport, percent } from "./preview-bars.js";
import { RulesTable, fillFilter } from "./table.js";
import { changeList } from "./values.js";

export class LimitsDesk {
  #calls;
  #page;
  #draft = null;
  #table;
  #preview;
  #panel;
  #guard;
  #remote = [];
  #theirs = null;
  #readOnly = false;
  #onPublished;

  /** `onPublished` is told of every set that this page put in force. */
  constructor(calls, page, onPublished) {
    this.#calls = calls;
    this.#page = page;
    this.#onPublished = onPublished;
    this.#table = new RulesTable(page.language, {
      edit: (key, path, value) => this.#change(() => this.#draft.set(key, path, value)),
      duplicate: (key) => this.#change(() => this.#draft.duplicate(key), true),
      remove: (key) => this.#change(() => this.#draft.remove(key)),
      restore: (key) => this.#change(() => this.#draft.restore(key)),
      shown: () => this.#show(),
    });
    this.#panel = new ChangePanel(page, { publish: () => this.#publish(), reset: () => this.#change(() => this.#draft.reset()) });
    this.#preview = new PreviewPanel(calls, page, { onFaults: (faults) => this.#takeFaults(faults), onState: () => this.#panel.seen(this.#preview?.kind ?? "idle") });
    this.#guard = new GuardStrip(calls, page, () => this.refresh());
    const { signal } = page;
    $("add-rule").addEventListener("click", () => this.#change(() => this.#draft.add(), true), { signal });
    $("theirs-take").addEventListener("click", () => this.#rebase(), { signal });
    $("theirs-drop").addEventListener("click", () => this.#takeTheirs(), { signal });
    addEventListener("beforeunload", (event) => this.#draft?.dirty && event.preventDefault(), { signal });
    page.onLanguage(() => this.#relabel());
    this.#relabel();
  }

  /** The version that this page knows to be in force. */
  get version() {
    return (this.#theirs ?? this.#draft?.base)?.version ?? null;
  }

  /** Reads what is in force; a draft under way is not lost over it. */
  async refresh() {
    const { status, body } = await this.#calls.rules();
    if (this.#page.signal.aborted) return status;
    if (status === 200) this.#arrived(body);
    else if (!this.#draft) this.#panel.say(body?.msg ?? this.#t("lost"), "bad");
    return status;
  }

  #arrived(set) {
    this.#readOnly = set.kind === "file";
    if (this.#draft?.base.version === set.version) return;
    this.#guard.look(set);
    this.#panel.say("");
    if (this.#draft?.dirty) this.#theirs = set;
    else this.#begin(new Draft(set));
    this.#show();
  }

  #begin(draft) {
    this.#draft = draft;
    this.#theirs = null;
    this.#remote = [];
    this.#table.clear();
    this.#preview.rest();
  }

  /** Takes an older version's rules as a draft on what is in force. */
  propose(rules, note) {
    this.#change(() => this.#draft.replace(rules));
    this.#panel.note = note;
  }

  showTraffic(decisions) {
    if (this.#draft) this.#table.showTraffic(decisions);
  }

  #t(key, values) {
    return this.#page.language.text(`limits.${key}`, values);
  }

  #change(step, open = false) {
    if (!this.#draft) return;
    const key = step();
    this.#panel.say("");
    this.#remote = [];
    this.#show();
    if (open) this.#table.open(key, "name");
    if (!this.#draft.dirty) this.#preview.rest();
    else if (check(this.#draft.rules).length > 0) this.#preview.hold();
    else this.#preview.ask({ rules: this.#draft.rules });
  }

  #takeFaults(faults) {
    this.#remote = faults;
    this.#show();
  }

  #faults() {
    const text = ({ code, values }) => this.#t(`fault.${code}`, values);
    return gather(check(this.#draft.rules), this.#remote, (i) => this.#draft.keyAt(i), text);
  }

  #show() {
    if (!this.#draft) return;
    const faults = this.#faults();
    this.#table.show(this.#draft, faults.byKey);
    this.#panel.show(this.#draft, () => changeList(this.#draft.changes(), this.#page.language), faults, this.#readOnly);
    $("rules-count").textContent = this.#t("count", { n: this.#draft.rules.length });
    this.#showTheirs();
  }

  #showTheirs() {
    const set = this.#theirs;
    $("theirs").hidden = set === null;
    if (!set) return;
    $("theirs-said").textContent = this.#t("meanwhile", { version: set.version, by: byLine(set, this.#page.language) });
    const draft = new Draft({ ...this.#draft.base });
    draft.replace(set.rules);
    $("theirs-changes").replaceChildren(changeList(draft.changes(), this.#page.language));
  }

  /** Puts the draft on top of what somebody else published. */
  #rebase() {
    let conflicts = [];
    const set = this.#theirs;
    this.#change(() => {
      this.#theirs = null;
      conflicts = this.#draft.rebase(set);
      this.#table.clear();
    });
    const both = [...new Set(conflicts.map((c) => c.rule))].join(", ");
    this.#panel.say(both ? this.#t("rebasedOver", { version: set.version, rules: both }) : this.#t("rebased", { version: set.version }), both ? "warn" : "");
  }

  #takeTheirs() {
    this.#begin(new Draft(this.#theirs));
    this.#show();
  }

  async #publish(override = false) {
    const { rules, base } = this.#draft;
    this.#panel.busy = true;
    this.#panel.say("");
    const answer = await this.#calls.publish({ rules }, { version: base.version, note: this.#panel.note, override });
    this.#panel.busy = false;
    if (this.#page.signal.aborted) return;
    if (answer.status === 200) this.#published(answer.body);
    else if (answer.status === 412) await this.#overtaken();
    else if (answer.status === 409 && answer.body?.needs_override) await this.#insist(answer.body);
    else if (answer.status === 400 && answer.body?.faults) this.#refused(answer.body.faults);
    else this.#panel.say(answer.body?.msg ?? this.#t("lost"), "bad");
  }

  #published(set) {
    const before = this.#draft.base.version;
    this.#begin(new Draft(set));
    this.#panel.note = "";
    this.#show();
    this.#panel.say(this.#t("published", { version: set.version }), "good");
    this.#guard.watch(set.version, before);
    this.#onPublished();
  }

  /** Another page put a set in force, by going back to an older one. */
  restored(set) {
    this.#guard.watch(set.version, set.version - 1);
    this.#arrived(set);
  }

  async #overtaken() {
    await this.refresh();
    this.#panel.say(this.#t("overtaken"), "warn");
    $("theirs").scrollIntoView({ block: "nearest" });
    $("theirs-take").focus();
  }

  #refused(faults) {
    this.#takeFaults(faults);
    this.#panel.say(this.#t("refused", { n: faults.length }), "bad");
    const first = this.#faults().byKey.entries().next().value;
    if (first) this.#table.open(first[0], first[1][0].field);
  }

  /** The server wants to be told that the author knows what the preview says. */
  async #insist({ reasons = [], preview }) {
    const { language, signal } = this.#page;
    const report = readReport(preview);
    const must = confirmation(report, this.#draft.base.version);
    const said = report?.reasons.length > 0 ? report.reasons.map((r) => reasonText(r, report, language)) : reasons.length > 0 ? reasons : [this.#t("overrideBare")];
    const figures = make("div", "figures");
    if (report) figures.append(...drawReport(report, language, { brief: true }));
    const answer = await confirm({
      title: this.#t("overrideTitle"), content: [...paragraphs(said, "reason"), figures],
      ask: this.#t(`overrideType.${must.of}`, { number: must.number }), must, action: this.#t("overrideGo"), danger: true,
    }, signal);
    if (answer) await this.#publish(true);
    else $("publish").focus();
  }

  #relabel() {
    const { language } = this.#page;
    const open = this.#table.clear();
    fillFilter($("filter"), ACTIONS, (a) => (a === "" ? this.#t("allActions") : actionName(a, language)), (a) => this.#table.filter(a));
    this.#table.filter("");
    this.#show();
    for (const key of open) this.#table.open(key);
  }
}

function reasonText({ code, action, text }, report, language) {
  const from = report.actions.find((a) => a.name === action) ?? report;
  const line = from.lines.find((l) => l.kind === "refused" && l.of === (code === "refuses_more_users" ? "users" : "messages"));
  const key = `limits.reason.${code}`;
  if (!language.has(key) || !line) return text;
  const what = action ? actionName(action, language) : language.text("limits.everything");
  return language.text(key, { what, share: percent(line.proposed.share, language), today: percent(line.today.share, language) });
}
