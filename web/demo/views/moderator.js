// What staff does from a message or a name: the menu, the forms that ask for more, what was done and its undo, and who somebody is.

import { BAN_SECONDS, MUTE_SECONDS, UNDO_MS, actsOn, isFinal, readSanction } from "../models/moderation.js";
import { portray } from "../models/person.js";
import { explain, whyOf } from "../models/refusal.js";
import { aria, dressFace, make } from "./dom.js";
import { openMenu, openSheet } from "./menu.js";
import { get } from "./poll.js";
import { fillFacts } from "./tables.js";

const ICONS = { reply: "reply", delete: "trash", pin: "pin", mute: "mute", ban: "ban", kick: "enter", cleanup: "trash", appoint: "shield", dismiss: "shield", who: "person" };
const UNITS = [60, 3600, 86_400];

export class Moderator {
  #page;
  #connection;
  #path;
  #token;
  #me = null;
  #onReply;
  #onDone;
  #toasts;

  /** `path` is the room's resource and `token()` its bearer, for what is read. `onReply(entry)`: null where nothing is said. */
  constructor(connection, path, token, page, { onReply = null, onDone = () => {} } = {}) {
    this.#page = page;
    this.#connection = connection;
    this.#path = path;
    this.#token = token;
    this.#onReply = onReply;
    this.#onDone = onDone;
    this.#toasts = make("div", "toasts");
    this.#toasts.setAttribute("role", "status");
    document.body.append(this.#toasts);
    document.addEventListener("keydown", (event) => this.#key(event), { signal: page.signal });
    connection.on("welcome", ({ user }) => { this.#me = user; }, { signal: page.signal });
    connection.on("event", (event) => {
      if (event.ev === "role") this.#me = { ...this.#me, role: event.role };
    }, { signal: page.signal });
  }

  get me() {
    return this.#me;
  }

  /** What may be done with an entry of the list; none: it has no menu. */
  acts(entry) {
    return actsOn(this.#me, entry).filter((act) => act !== "reply" || this.#onReply);
  }

  /** Opens the menu of an entry at a point of the window. */
  open(entry, at) {
    const { language, signal } = this.#page;
    const acts = this.acts(entry);
    if (acts.length === 0) return;
    const times = (of, seconds) => [...seconds.map((s) => ({ id: `${of}:${s}`, text: this.#time(s) })), { id: of, text: language.text("mod.other") }];
    openMenu({
      at, signal, label: portray(entry.user).name,
      items: acts.map((act) => ({
        id: act, icon: ICONS[act], text: language.text(`mod.${act}`), tone: ["delete", "ban", "kick", "cleanup"].includes(act) ? "bad" : "",
        choices: act === "mute" ? times("mute", MUTE_SECONDS) : act === "ban" ? times("ban", BAN_SECONDS) : undefined,
      })),
      onPick: (id) => this.#picked(id, entry),
    });
  }

  #picked(id, entry) {
    const [act, seconds] = id.split(":");
    if (act === "reply") return this.#onReply(entry);
    if (act === "who") return this.who(entry.user);
    if ((act === "mute" || act === "ban") && seconds === undefined) return this.#ask(act, entry.user);
    const fields = { delete: { mid: entry.mid }, pin: { mid: entry.mid } }[act] ?? { user: entry.user.id };
    if (seconds !== undefined) fields.seconds = Number(seconds);
    return this.act(act, fields, entry.user);
  }

  /** Makes an act, says what became of it, and offers to undo it. Returns the answer. */
  async act(action, fields, user) {
    const { language } = this.#page;
    const answer = await this.#connection.request("moderate", { action, ...fields });
    const name = user ? portray(user).name : fields.user ?? "";
    if (answer.code === 200) this.#toast(language.text(`mod.did.${action}`, { name, t: this.#time(fields.seconds ?? 0) }), isFinal(action) ? undefined : answer.seq);
    else this.#toast(answer.msg ?? explain(answer, language), undefined, "bad");
    this.#onDone(answer);
    return answer;
  }

  #time(seconds) {
    return seconds === 0 ? this.#page.language.text("mod.ever") : this.#page.language.duration(seconds * 1000);
  }

  /** Control or Command and Z undo the last act that can be; in a field they are its own. */
  #key(event) {
    if (event.key.toLowerCase() !== "z" || !(event.ctrlKey || event.metaKey) || event.shiftKey || event.altKey) return;
    const undo = [...this.#toasts.querySelectorAll(".toast-undo")].pop();
    if (!undo || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
    event.preventDefault();
    undo.click();
  }

  /** A line that goes by itself, with the seconds in which it can be undone. */
  #toast(text, seq, tone = "") {
    const { language, signal } = this.#page;
    const toast = make("div", "toast");
    toast.dataset.tone = tone;
    toast.append(make("span", "", text));
    const gone = () => {
      clearInterval(ticking);
      toast.remove();
    };
    let left = UNDO_MS / 1000;
    let undo = null;
    const ticking = setInterval(() => {
      left -= 1;
      if (left <= 0 || signal.aborted) gone();
      else if (undo) undo.textContent = language.text("mod.undoIn", { s: left });
    }, 1000);
    if (seq !== undefined) {
      undo = make("button", "toast-undo", language.text("mod.undoIn", { s: left }));
      undo.type = "button";
      aria(undo, "label", language.text("mod.undoOf", { what: text }));
      aria(undo, "keyshortcuts", "Control+Z Meta+Z");
      undo.title = language.text("mod.undoKey");
      undo.setAttribute("aria-live", "off"); // its seconds are not read out, the line is
      undo.addEventListener("click", () => {
        gone();
        this.act("undo", { seq });
      });
      toast.append(make("span", "only-read", undo.title), undo);
    }
    this.#toasts.append(toast);
    while (this.#toasts.childElementCount > 4) this.#toasts.firstElementChild.remove();
  }

  /** Asks for how long and why, and with a ban whether the network is meant. */
  #ask(act, user) {
    const { language, signal } = this.#page;
    const form = make("form", "ask");
    const amount = field("input", { type: "number", min: "1", value: "1", inputMode: "numeric", required: true });
    const unit = field("select");
    const units = act === "ban" ? [...UNITS, 0] : UNITS;
    unit.append(...units.map((u) => {
      const option = make("option", "", language.text(u === 0 ? "mod.ever" : `mod.unit.${u}`));
      option.value = u;
      return option;
    }));
    unit.value = 3600;
    unit.addEventListener("change", () => { amount.disabled = unit.value === "0"; });
    const reason = field("input", { type: "text", maxLength: 200, autocomplete: "off", dir: "auto" });
    const network = make("input");
    network.type = "checkbox";
    const said = make("p", "ask-said");
    said.setAttribute("role", "status");
    const time = make("div", "ask-time");
    time.append(labelled(language.text("mod.howLong"), amount), labelled(language.text("mod.unit"), unit));
    form.append(time, labelled(language.text("mod.reason"), reason));
    if (act === "ban") {
      const check = make("label", "check");
      check.append(network, make("span", "", language.text("mod.network")));
      form.append(check, make("p", "ask-hint", language.text("mod.networkHint")));
    }
    const foot = make("div", "foot");
    const go = make("button", "button", language.text(`mod.${act}`));
    foot.append(said, go);
    form.append(foot);
    const sheet = openSheet({ title: language.text(`mod.ask.${act}`, { name: portray(user).name }), content: form, closeLabel: language.text("app.close"), signal });
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const { fields, fault } = readSanction({ amount: amount.value, unit: Number(unit.value), reason: reason.value, network: network.checked });
      if (fault) {
        said.textContent = language.text(`mod.fault.${fault}`);
        return;
      }
      sheet.close();
      await this.act(act, { user: user.id, ...fields }, user);
    });
  }

  /** Shows who somebody is in this room, and what can be done. */
  async who(user) {
    const { language, signal } = this.#page;
    const { status, body } = await get(`${this.#path}/users/${encodeURIComponent(user.id)}`, this.#token(), signal);
    if (signal.aborted) return;
    const content = make("div", "who");
    if (status !== 200) content.append(make("p", "none", body?.msg ?? language.text("why.unavailable")));
    else this.#tell(content, { ...user, ...body, id: user.id });
    const sheet = openSheet({ title: portray(user).name, content, closeLabel: language.text("app.close"), signal });
    content.addEventListener("click", (event) => {
      const button = event.target.closest("[data-act]");
      if (!button) return;
      sheet.close();
      this.#picked(button.dataset.act, { user: { ...user, role: body.role }, kind: "person" });
    });
    content.addEventListener("lift", () => sheet.close());
  }

  #tell(content, person) {
    const { language } = this.#page;
    const head = make("div", "who-head");
    const names = make("div");
    names.append(make("bdi", "who-name", portray(person).name), make("span", "mono", person.id));
    head.append(dressFace(make("span"), portray(person)), names);
    const facts = make("dl", "facts");
    fillFacts(facts, [
      [language.text("mod.role"), language.has(`role.${person.role}`) ? language.text(`role.${person.role}`) : language.text("mod.viewer")],
      [language.text("mod.sessions"), language.number(person.sessions)],
      [language.text("mod.since"), person.since ? language.text("host.ago", { t: language.duration(Date.now() - person.since) }) : "–"],
      [language.text("mod.admitted"), language.number(person.admitted)],
      [language.text("mod.refused"), language.number(person.refused)],
    ]);
    const buttons = make("div", "who-acts");
    for (const act of actsOn(this.#me, { user: { id: person.id, role: person.role }, kind: "person" })) {
      if (act === "who") continue;
      const b = make("button", "button quiet", language.text(`mod.${act}`));
      b.type = "button";
      b.dataset.act = act;
      buttons.append(b);
    }
    content.append(head, facts, buttons);
    this.#list(content, "mod.inForce", person.sanctions ?? [], (s) => [this.sanction(s), this.lift(s, person)]);
    this.#list(content, "mod.refusals", person.refusals ?? [], (r) => [whyOf(r, language, r.action, "them")]);
    this.#list(content, "mod.messages", person.messages ?? [], (m) => [make("bdi", "", m.text)]);
    this.#list(content, "mod.acts", person.acts ?? [], (a) => [this.deed(a)]);
  }

  #list(content, word, items, tell) {
    if (items.length === 0) return;
    const list = make("ul", "who-list");
    list.append(...items.map((item) => {
      const line = make("li");
      line.append(...tell(item).filter((part) => part !== null));
      return line;
    }));
    content.append(make("h3", "", this.#page.language.text(word)), list);
  }

  /** A mute or a ban in words. */
  sanction(s) {
    const { language } = this.#page;
    const parts = [language.text(s.until === undefined ? `mod.${s.kind}.ever` : `mod.${s.kind}.left`, { t: language.duration(s.left_ms ?? 0) })];
    if (s.network) parts.push(language.text("mod.withNetwork"));
    if (s.by) parts.push(language.text("mod.by", { name: s.by }));
    if (s.reason) parts.push(`“${s.reason}”`);
    return make("span", "", parts.join(" · "));
  }

  /** The button that ends a mute or a ban before its time; null for whom it is not. */
  lift(s, user) {
    if (!actsOn(this.#me, { user: { id: s.user, role: user?.role }, kind: "person" }).includes(s.kind)) return null;
    const action = s.kind === "ban" ? "unban" : "unmute";
    const b = make("button", "small", this.#page.language.text(`mod.${action}`));
    b.type = "button";
    b.addEventListener("click", () => {
      b.dispatchEvent(new CustomEvent("lift", { bubbles: true }));
      this.act(action, { user: s.user }, user ?? { id: s.user });
    });
    return b;
  }

  /** An entry of the audit in words. */
  deed(a) {
    const { language } = this.#page;
    const did = a.action === "undo" ? a.undid ?? "" : a.action;
    const shield = (did === "release" || did === "drop") && a.mid === undefined || did === "settings" && a.by === ""; // all at once, or a raid
    const of = shield ? `${did}.shield` : did;
    const word = language.has(`mod.deed.${of}`) ? language.text(`mod.deed.${of}`, { t: this.#time(a.seconds ?? 0), name: a.user ?? "", text: a.text ?? "" }) : of;
    const what = a.action === "undo" ? language.text("mod.deed.undo", { what: word }) : word;
    const parts = [a.by ? `${a.by}: ${what}` : what];
    if (a.reason) parts.push(`“${a.reason}”`);
    return make("span", "", parts.join(" · "));
  }
}

function field(tag, properties = {}) {
  return Object.assign(make(tag, "field"), properties);
}

function labelled(text, input) {
  const label = make("label");
  label.append(make("span", "", text), input);
  return label;
}
