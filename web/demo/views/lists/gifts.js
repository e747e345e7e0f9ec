// The desk of the catalogue: what can be given, what it costs, in which order it is offered.

import { GiftDraft, tidy } from "../../models/lists/gifts.js";
import { controlFor, gather } from "../../models/limits/faults.js";
import { $, icon, make, named } from "../dom.js";
import { dressGift, giftName } from "../gift-face.js";
import { ChangePanel } from "../limits/change.js";
import { field, showFaults, textInput } from "../limits/controls.js";
import { changeList } from "../limits/values.js";

export class GiftsDesk {
  #calls;
  #page;
  #draft = null;
  #panel;
  #remote = [];
  #rows = new Map();
  #steps;

  /** `steps`: `{published(), goBack(version)}`. */
  constructor(calls, page, steps) {
    this.#calls = calls;
    this.#page = page;
    this.#steps = steps;
    const { signal } = page;
    this.#panel = new ChangePanel(page, { publish: () => this.#publish(), reset: () => this.#change(() => this.#draft.reset()) }, "gifts");
    $("gifts-preview").dataset.state = "idle"; // a catalogue has none
    $("gifts-add").addEventListener("click", () => {
      let key;
      this.#change(() => { key = this.#draft.add(); });
      this.#rows.get(key)?.focus("id");
    }, { signal });
    addEventListener("beforeunload", (event) => this.#draft?.dirty && event.preventDefault(), { signal });
    page.onLanguage(() => {
      this.#rows.clear();
      this.#show();
    });
  }

  get version() {
    return this.#draft?.base.version ?? null;
  }

  async refresh() {
    const { status, body } = await this.#calls.current();
    if (this.#page.signal.aborted) return;
    if (status === 200) this.#arrived(body);
    else if (!this.#draft) this.#panel.say(body?.msg ?? this.#page.language.text("limits.lost"), "bad");
  }

  /** Takes the catalogue in force; changes under way go on top of it. */
  #arrived(body) {
    if (this.#draft?.base.version === body.version) return;
    if (this.#draft?.dirty) {
      this.#draft.rebase({ ...body, gifts: body.gifts ?? [] });
      this.#rows.clear();
      this.#panel.say(this.#t("rebased", { version: body.version }), "warn");
    } else this.#begin(body);
    this.#show();
  }

  #begin(body) {
    this.#draft = new GiftDraft({ ...body, gifts: body.gifts ?? [] });
    this.#remote = [];
    this.#rows.clear();
  }

  #t(key, values) {
    return this.#page.language.text(`gifts.${key}`, values);
  }

  #change(step) {
    if (!this.#draft) return;
    step();
    this.#panel.say("");
    this.#remote = [];
    this.#show();
  }

  #faults() {
    const { language } = this.#page;
    const text = ({ code, values }) => language.text(language.has(`gifts.fault.${code}`) ? `gifts.fault.${code}` : `limits.fault.${code}`, values);
    return gather(this.#draft.faults(), this.#remote, (i) => this.#draft.keyAt(i), text);
  }

  #show() {
    if (!this.#draft) return;
    const faults = this.#faults();
    const { entries, dirty, base, changed } = this.#draft;
    const rows = new Map(entries.map((e) => [e.key, this.#rows.get(e.key) ?? this.#row(e.key)]));
    this.#rows = rows;
    const at = document.activeElement;
    const fresh = [...rows.values()].map((r) => r.node);
    const old = [...$("gifts").children];
    if (fresh.length !== old.length || fresh.some((node, i) => node !== old[i])) {
      $("gifts").replaceChildren(...fresh);
      if (at?.isConnected) at.focus({ preventScroll: true });
    }
    entries.forEach((e, i) => rows.get(e.key).show(e, i, faults.byKey.get(e.key) ?? []));
    $("gifts-none").hidden = entries.length > 0;
    $("gifts-count").textContent = this.#t("count", { n: entries.length });
    this.#panel.show({ dirty, base, changed }, () => this.#changes(), faults);
  }

  #changes() {
    const changes = this.#draft.changes();
    return changes.length > 0 ? changeList(changes, this.#page.language) : make("p", "quiet", this.#t("order"));
  }

  #row(key) {
    const { language } = this.#page;
    const node = make("li", "ware");
    const face = make("span", "ware-face");
    const edit = (path, value) => this.#change(() => this.#draft.set(key, path, value ?? ""));
    const texts = [["id", this.#t("id"), "mono"], ["name", this.#t("name"), ""], ...language.codes.map((code) => [`names.${code}`, this.#t("nameIn", { language: language.textIn(code, "app.languageName") }), ""]),
      ["price", this.#t("price"), "number"], ["icon", this.#t("icon"), ""]];
    const controls = texts.map(([path, label, className]) => {
      const control = textInput(path, { kind: path === "price" ? "number" : "text", className, onEdit: edit });
      if (path.includes("name")) control.input.dir = "auto";
      control.element = field(label, control.input);
      return control;
    });
    const buttons = make("div", "ware-buttons");
    const tool = (name, sign, run) => {
      const b = make("button", "tool");
      b.type = "button";
      b.append(sign);
      b.addEventListener("click", run);
      buttons.append(b);
      return (id) => named(b, this.#t(name, { name: id }));
    };
    const forward = tool("forward", icon("up"), () => this.#change(() => this.#draft.forward(key)));
    const remove = tool("remove", icon("close"), () => {
      this.#change(() => this.#draft.remove(key));
      $("gifts-add").focus();
    });
    node.append(face, ...controls.map((c) => c.element), buttons);
    return {
      node,
      focus: (path) => controls.find((c) => c.path === path)?.input.select(),
      show: ({ gift, was }, index, faults) => {
        for (const c of controls) c.show(gift);
        face.replaceChildren(dressGift(gift));
        node.dataset.state = was === null ? "new" : JSON.stringify(tidy(was)) === JSON.stringify(tidy(gift)) ? "" : "changed";
        forward(giftName(gift, language));
        remove(giftName(gift, language));
        buttons.firstElementChild.disabled = index === 0;
        const paths = controls.map((c) => c.path);
        showFaults(controls, faults.map((f) => ({ path: controlFor(f.field, paths), text: f.text })));
      },
    };
  }

  async #publish() {
    const { base } = this.#draft;
    this.#panel.busy = true;
    this.#panel.say("");
    const { status, body } = await this.#calls.publish({ gifts: this.#draft.gifts.map(tidy) }, base.version, this.#panel.note);
    this.#panel.busy = false;
    if (this.#page.signal.aborted) return;
    if (status === 200) {
      this.#begin(body);
      this.#panel.note = "";
      this.#show();
      this.#panel.say(this.#t("published", { version: body.version }), "good", () => this.#undo(base.version));
      this.#steps.published();
      return;
    }
    if (status === 412) await this.refresh();
    else {
      this.#remote = body?.faults ?? [];
      this.#show();
      this.#panel.say(body?.msg ?? this.#page.language.text("limits.lost"), "bad");
    }
  }

  async #undo(version) {
    await this.#steps.goBack(version);
    await this.refresh();
  }
}

/** What a version of the catalogue's history changed. */
export function tellGiftChanges(changes, language) {
  return changeList(changes.map((c) => ({ ...c, rule: c.gift })), language);
}
