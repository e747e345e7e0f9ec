// The desk of a list of words: the list, what would change, what it would have caught, and a box to try texts.

import { WordDraft, actionOptions, readLines, wordFaults } from "../../models/lists/words.js";
import { gather } from "../../models/limits/faults.js";
import { $, aria, make } from "../dom.js";
import { ChangePanel } from "../limits/change.js";
import { select, toggle } from "../limits/controls.js";
import { CaughtPanel } from "./caught.js";
import { TryBox } from "./try.js";
import { WordTable } from "./table.js";

export class WordsDesk {
  #calls;
  #page;
  #draft = null;
  #table;
  #panel;
  #caught;
  #try;
  #remote = [];
  #options = [];
  #onPublished;
  #goBack;

  /** `onPublished` is told of each list that this page put in force; `goBack(version)` undoes one, and without it the list before is put back. */
  constructor(calls, page, { onPublished = () => {}, goBack = null } = {}) {
    this.#calls = calls;
    this.#page = page;
    this.#onPublished = onPublished;
    this.#goBack = goBack;
    const { signal } = page;
    this.#table = new WordTable(page.language, {
      set: (key, change) => this.#change(() => this.#draft.set(key, change)),
      toggle: (key) => this.#change(() => this.#draft.toggle(key)),
    });
    this.#panel = new ChangePanel(page, { publish: () => this.#publish(), reset: () => this.#change(() => this.#draft.reset()) }, "words");
    this.#caught = new CaughtPanel(calls, page, { onFault: (faults) => this.#takeFaults(faults), onState: (kind) => this.#panel.seen(kind) });
    this.#try = new TryBox(calls, page, () => (this.#draft?.dirty ? this.#draft.list : null));
    $("words-find").addEventListener("input", () => this.#show(), { signal });
    $("words-add").addEventListener("submit", (event) => this.#add(event), { signal });
    $("words-new").addEventListener("input", () => this.#say(""), { signal });
    $("words-many").addEventListener("click", () => this.#openPaste($("words-paste").hidden), { signal });
    $("words-paste").addEventListener("submit", (event) => this.#addMany(event), { signal });
    addEventListener("beforeunload", (event) => this.#draft?.dirty && event.preventDefault(), { signal });
    page.onLanguage(() => this.#relabel());
    this.#relabel();
  }

  get version() {
    return this.#draft?.base.version ?? null;
  }

  async refresh() {
    const { status, body } = await this.#calls.current();
    if (this.#page.signal.aborted) return status;
    if (status === 200) this.arrived(body);
    else if (!this.#draft) this.#panel.say(body?.msg ?? this.#page.language.text("limits.lost"), "bad");
    return status;
  }

  /** Takes the list that is in force; changes under way go on top of it. */
  arrived(list) {
    if (this.#draft && same(this.#draft.base, list)) return;
    if (this.#draft?.dirty) {
      this.#draft.rebase(list);
      this.#table.clear();
      this.#panel.say(this.#t("rebased"), "warn");
      if (this.#draft.dirty) this.#caught.ask(this.#draft.list);
      else this.#caught.rest();
    } else this.#begin(list);
    this.#show();
  }

  #begin(list) {
    this.#draft = new WordDraft(list);
    this.#table.clear();
    this.#remote = [];
    this.#caught.rest();
  }

  #t(key, values) {
    return this.#page.language.text(`words.${key}`, values);
  }

  #say(text, tone = "bad") {
    $("words-add-said").textContent = text;
    $("words-add-said").dataset.tone = tone;
    aria($("words-new"), "invalid", text !== "" && tone === "bad" ? "true" : null);
  }

  #change(step) {
    if (!this.#draft) return;
    step();
    this.#panel.say("");
    this.#remote = [];
    this.#show();
    if (!this.#draft.dirty) this.#caught.rest();
    else if (this.#draft.faults().length > 0) this.#caught.hold();
    else this.#caught.ask(this.#draft.list);
    this.#try.ask();
  }

  #add(event) {
    event.preventDefault();
    const word = $("words-new").value;
    let fault = "";
    this.#change(() => { fault = this.#draft.add(word, $("words-action").value); });
    if (fault === "") $("words-new").value = "";
    this.#say(fault && this.#t(`fault.${fault}`));
    $("words-new").focus();
  }

  #openPaste(open) {
    $("words-paste").hidden = !open;
    aria($("words-many"), "expanded", String(open));
    if (open) $("words-text").focus();
  }

  /** What can't be a word stays in the box, for its author to mend. */
  #addMany(event) {
    event.preventDefault();
    let done;
    this.#change(() => { done = this.#draft.addMany(readLines($("words-text").value, $("words-action").value)); });
    if (!done) return;
    $("words-text").value = done.bad.map((b) => b.word).join("\n");
    const said = [this.#t("addedMany", { n: done.added })];
    if (done.known > 0) said.push(this.#t("knownMany", { n: done.known }));
    for (const { word, fault } of done.bad.slice(0, 3)) said.push(this.#t("badLine", { word: word.slice(0, 40), why: this.#t(`fault.${fault}`) }));
    if (done.bad.length > 3) said.push(this.#t("badMore", { n: done.bad.length - 3 }));
    this.#say(said.join(" "), done.bad.length > 0 ? "bad" : "good");
    if (done.bad.length === 0) this.#openPaste(false);
    (done.bad.length === 0 ? $("words-many") : $("words-text")).focus();
  }

  #takeFaults(faults) {
    this.#remote = faults;
    this.#show();
  }

  #faults() {
    const text = ({ code }) => this.#t(`fault.${code}`);
    return gather(this.#draft.faults(), this.#remote, (i) => this.#draft.keyAt(i), text);
  }

  #show() {
    if (!this.#draft) return;
    const faults = this.#faults();
    const { dirty, base, changed } = this.#draft;
    this.#table.show(this.#draft, faults.byKey, $("words-find").value);
    this.#panel.show({ dirty, base, changed }, () => changeNodes(this.#draft.changes(), this.#page.language), faults);
    $("words-count").textContent = this.#t("count", { n: this.#draft.size });
    for (const option of this.#options) option.show(this.#draft.options);
  }

  async #publish() {
    const { list, base } = this.#draft;
    this.#panel.busy = true;
    this.#panel.say("");
    const { status, body } = await this.#calls.publish(list, base.version, this.#panel.note);
    this.#panel.busy = false;
    if (this.#page.signal.aborted) return;
    if (status === 200) this.#published({ ...list, ...body, words: list.words }, base);
    else if (status === 412) await this.refresh();
    else {
      this.#takeFaults(wordFaults(body));
      this.#panel.say(body?.msg ?? this.#page.language.text("limits.lost"), "bad");
    }
  }

  #published(list, before) {
    this.#begin(list);
    this.#panel.note = "";
    this.#show();
    this.#panel.say(this.#t("published", { version: list.version }), "good", () => this.#undo(before));
    this.#onPublished();
  }

  async #undo(before) {
    if (this.#goBack) await this.#goBack(before.version);
    else await this.#calls.publish({ words: before.words ?? [], traditional: before.traditional === true, pinyin: before.pinyin === true });
    await this.refresh();
    this.#panel.say(this.#t("undone"), "good");
  }

  #relabel() {
    const { language } = this.#page;
    const chosen = $("words-action").value || "hold";
    $("words-action").replaceChildren(...select("action", actionOptions(language), { onEdit: () => {} }).input.children);
    $("words-action").value = chosen;
    this.#options = ["traditional", "pinyin"].map((name) => {
      const control = toggle(name, this.#t(name), { onEdit: (_, on) => this.#change(() => this.#draft.setOption(name, on === true)) });
      control.show = (options) => { control.input.checked = options[name]; };
      return control;
    });
    $("words-options").replaceChildren(...this.#options.flatMap((control) => {
      const knob = make("div", "knob");
      knob.append(control.element, make("small", "hint", this.#t(`${control.path}Hint`)));
      return [knob];
    }));
    this.#table.clear();
    this.#say("");
    this.#show();
  }
}

const SHOWN = 8;

function changeNodes({ added, removed, changed, options }, language) {
  const list = make("ul", "changes");
  const action = (w) => language.text(`words.actionOf.${w.action}`);
  const put = (title, words, tell) => {
    if (words.length === 0) return;
    const item = make("li");
    item.append(make("p", "rule", language.text(`words.${title}`, { n: words.length })));
    for (const w of words.slice(0, SHOWN)) item.append(tell(w));
    if (words.length > SHOWN) item.append(make("p", "change soft", language.text("words.more", { n: words.length - SHOWN })));
    list.append(item);
  };
  const line = (w, after, way) => {
    const node = make("p", "change");
    if (way) node.dataset.way = way;
    node.append(make("bdi", "", w.word), make("small", "", after));
    return node;
  };
  put("added", added, (w) => line(w, action(w), "stricter"));
  put("removed", removed, (w) => line(w, action(w), "looser"));
  put("altered", changed, ({ was, is }) => line(is, action(was) === action(is) ? language.text(is.whole ? "words.whole" : "words.anywhere") : `${action(was)} → ${action(is)}`));
  if (options.length > 0) {
    const item = make("li");
    item.append(make("p", "rule", options.map((o) => language.text(`words.${o}`)).join(language.text("list.comma"))));
    list.append(item);
  }
  return list;
}

/** What a version of a history changed. */
export function tellWordChanges({ some = [], added, removed, options }, language) {
  const node = make("p", "change words-some");
  const left = added + removed - some.length;
  node.append(...some.map((w) => {
    const word = make(w.startsWith("+") ? "ins" : "del", "", w.slice(1));
    return word;
  }));
  if (left > 0) node.append(make("span", "soft", language.text("words.more", { n: left })));
  if (options) node.append(make("span", "tag", language.text("words.options")));
  return node;
}

function same(a, b) {
  if (a.version !== undefined || b.version !== undefined) return a.version === b.version;
  return a.traditional === b.traditional && a.pinyin === b.pinyin && JSON.stringify(a.words ?? []) === JSON.stringify(b.words ?? []);
}
