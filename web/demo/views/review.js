// The host's desk: what waits for a decision, who is muted or banned, what was decided, and by whom.

import { Held, canUndo, undoneOf } from "../models/moderation.js";
import { portray } from "../models/person.js";
import { $, make } from "./dom.js";
import { get } from "./poll.js";
import { personCell } from "./tables.js";

/** Acts come as events to nobody; the lists are read again after each own act, and this often. */
const READ_EVERY_MS = 4000;
const AUDIT_PAGE = 20;
/** What was decided stays to be seen for so many lines. */
const DECIDED_SHOWN = 3;

export class Review {
  #page;
  #path;
  #token;
  #moderator;
  #held = new Held();
  #sanctions = [];
  #audit = [];
  #older = [];
  #appointed = [];
  #timer = 0;

  constructor(path, token, moderator, page) {
    this.#page = page;
    this.#path = path;
    this.#token = token;
    this.#moderator = moderator;
    const { signal } = page;
    page.onLanguage(() => this.#show());
    signal.addEventListener("abort", () => clearTimeout(this.#timer));
    $("audit-more").addEventListener("click", () => this.#readOlder(), { signal });
    $("announce-form").addEventListener("submit", async (event) => {
      event.preventDefault();
      const text = $("announce").value.trim();
      if (text === "") return;
      if ((await moderator.act("announce", { text })).code === 200) $("announce").value = "";
    }, { signal });
    $("appoint-form").addEventListener("submit", async (event) => {
      event.preventDefault();
      const user = $("appoint").value.trim();
      if (user === "") return;
      if ((await moderator.act("appoint", { user }, { id: user })).code === 200) $("appoint").value = "";
    }, { signal });
    this.read();
  }

  /** An event of the room: of a message that was held, or decided on. */
  event(event) {
    if (event.ev === "held" && this.#held.take(event)) this.#showHeld();
  }

  /** The room as its resource has it. */
  room(room) {
    this.#appointed = room.appointed ?? [];
    this.#showStaff();
  }

  /** Reads all lists, and goes on reading. */
  async read() {
    const { signal } = this.#page;
    clearTimeout(this.#timer);
    const [held, sanctions, audit] = await Promise.all([
      get(`${this.#path}/held?decided=true`, this.#token(), signal), get(`${this.#path}/sanctions?limit=100`, this.#token(), signal),
      get(`${this.#path}/audit?limit=${AUDIT_PAGE}`, this.#token(), signal),
    ]);
    if (signal.aborted) return;
    if (held.status === 200) for (const h of held.body.held) this.#held.take(h);
    if (sanctions.status === 200) this.#sanctions = sanctions.body.sanctions;
    if (audit.status === 200) this.#audit = audit.body.entries;
    this.#show();
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.read(), READ_EVERY_MS);
  }

  async #readOlder() {
    const last = [...this.#audit, ...this.#older].pop();
    const { status, body } = await get(`${this.#path}/audit?limit=${AUDIT_PAGE}&before=${last.seq}`, this.#token(), this.#page.signal);
    if (status !== 200) return;
    this.#older.push(...body.entries);
    $("audit-more").dataset.end = body.entries.length < AUDIT_PAGE ? "true" : "";
    this.#showAudit();
  }

  #show() {
    this.#showHeld();
    this.#showSanctions();
    this.#showAudit();
    this.#showStaff();
  }

  #showHeld() {
    const { language } = this.#page;
    const { waiting, decided } = this.#held;
    $("held-count").textContent = waiting.length > 0 ? language.number(waiting.length) : "";
    fill("held-list", "held-none", [...waiting.map((h) => {
      const said = make("div", "deed");
      const why = [language.text("host.heldFor", { cause: [h.cause, h.detail].filter(Boolean).join(" · ") })];
      if (h.until) why.push(language.text("host.heldLeft", { t: language.duration(h.until - Date.now()), then: language.text(`host.then.${h.then ?? "drop"}`) }));
      said.append(this.#person(h.user), make("bdi", "deed-text", h.text), make("small", "", why.join(" · ")));
      const decide = (action, tone) => {
        const b = make("button", `small ${tone}`, language.text(`host.${action}`));
        b.type = "button";
        b.addEventListener("click", () => this.#moderator.act(action, { mid: h.mid }));
        return b;
      };
      const buttons = make("div", "deed-buttons");
      buttons.append(decide("release", "good"), decide("drop", "bad"));
      return item(h.mid, [said, buttons]);
    }), ...decided.slice(0, DECIDED_SHOWN).map((h) => {
      const said = make("div", "deed");
      const by = h.by ? portray(typeof h.by === "object" ? h.by : { id: h.by }).name : language.text("host.byTime");
      said.append(make("bdi", "deed-text", h.text ?? ""), make("small", "", language.text(`host.heldDone.${h.state}`, { name: by })));
      const line = item(h.mid, [said]);
      line.dataset.over = "";
      return line;
    })]);
  }

  #showSanctions() {
    fill("sanctions", "sanctions-none", this.#sanctions.map((s) => {
      const said = make("div", "deed");
      said.append(this.#person({ id: s.user, name: s.name }), this.#moderator.sanction(s));
      return item(`${s.kind} ${s.user}`, [said, this.#moderator.lift(s)]);
    }));
  }

  #showAudit() {
    const { language } = this.#page;
    const all = [...this.#audit, ...this.#older.filter((e) => e.seq < (this.#audit[this.#audit.length - 1]?.seq ?? 0))];
    const undone = undoneOf(all);
    fill("audit", "audit-none", all.map((a) => {
      const said = make("div", "deed");
      said.append(this.#moderator.deed(a), make("small", "", language.text("host.ago", { t: language.duration(Date.now() - a.time) })));
      let undo = null;
      if (canUndo(a, undone)) {
        undo = make("button", "small", language.text("mod.undo"));
        undo.type = "button";
        undo.addEventListener("click", () => this.#moderator.act("undo", { seq: a.seq }));
      }
      const line = item(String(a.seq), [said, undo]);
      line.toggleAttribute("data-over", undone.has(a.seq));
      return line;
    }));
    $("audit-more").hidden = all.length < AUDIT_PAGE || $("audit-more").dataset.end === "true";
  }

  #showStaff() {
    const { language } = this.#page;
    fill("staff", "staff-none", this.#appointed.map((a) => {
      const out = make("button", "small", language.text(a.role === "moderator" ? "mod.dismiss" : "mod.appoint"));
      out.type = "button";
      out.addEventListener("click", () => this.#moderator.act(a.role === "moderator" ? "dismiss" : "appoint", { user: a.user }, { id: a.user }));
      return item(a.user, [this.#person({ id: a.user, role: a.role }), out]);
    }));
  }

  #person(user) {
    return personCell(user, (who) => this.#moderator.who(who));
  }
}

function item(key, parts) {
  const line = make("li");
  line.dataset.of = key;
  line.append(...parts.filter((part) => part !== null));
  return line;
}

/** Puts lines into a list; one in which the focus is keeps it, on the same button of the same line. */
function fill(list, none, lines) {
  const at = document.activeElement?.closest(`#${list} li`);
  const which = at ? [...at.querySelectorAll("button")].indexOf(document.activeElement) : -1;
  $(list).replaceChildren(...lines);
  $(none).hidden = lines.length > 0;
  if (which >= 0) lines.find((l) => l.dataset.of === at.dataset.of)?.querySelectorAll("button")[which]?.focus({ preventScroll: true });
}
