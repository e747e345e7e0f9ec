// The chat list: drawn once per animation frame, following its end only while
// the reader is there.

import { Announcer } from "../models/announcer.js";
import { Follow } from "../models/follow.js";
import { honoursOf, portray } from "../models/person.js";
import { whyOf } from "../models/refusal.js";
import { dressGift, giftName } from "./gift-face.js";
import { aria, every, frames, icon, make } from "./dom.js";

/** Between two drawings in a flood: each costs a layout of the list, and nobody reads faster. */
const DRAW_EVERY_MS = 100;

export class Chat {
  #list;
  #pill;
  #heard;
  #messages;
  #language;
  #onAgain;
  #moderator;
  #more = make("button", "more");
  #nodes = new Map();
  #follow = new Follow();
  #announcer = new Announcer();
  #wake;
  #drawnAt = -Infinity;

  /**
   * `list` scrolls and holds an ordered list. `onAgain` gets the entry that its sender wants to send again; `moderator` says what
   * may be done with an entry, and opens its menu.
   */
  constructor({ list, pill, heard }, messages, { language, signal, onLanguage, onAgain, moderator = null }) {
    this.#list = list;
    this.#pill = pill;
    this.#heard = heard;
    this.#messages = messages;
    this.#language = language;
    this.#onAgain = onAgain;
    this.#moderator = moderator;
    this.#wake = frames((now) => this.#drawAt(now), signal);
    list.addEventListener("scroll", () => this.#scrolled(), { signal, passive: true });
    pill.addEventListener("click", () => this.#toEnd(), { signal });
    if (moderator) this.#setUpMenu(signal);
    onLanguage(() => this.#redraw());
    every(1000, () => this.#announce(), signal);
    const resizes = new ResizeObserver(() => this.#follow.following && this.#scrollToEnd());
    resizes.observe(list);
    signal.addEventListener("abort", () => resizes.disconnect());
  }

  /** The messages changed; they are drawn in the next frame. */
  changed() {
    this.#wake();
  }

  /** Draws, or goes on waiting; an own message is never kept waiting. */
  #drawAt(now) {
    if (now - this.#drawnAt < DRAW_EVERY_MS && !this.#messages.hasOwnUndrawn) return true;
    this.#drawnAt = now;
    this.#draw();
    return false;
  }

  #draw() {
    const { added, changed, removed } = this.#messages.take();
    for (const entry of removed) {
      this.#nodes.get(entry.key)?.remove();
      this.#nodes.delete(entry.key);
    }
    for (const entry of changed) this.#replace(entry);
    const fresh = document.createDocumentFragment();
    for (const entry of added) {
      const next = entry.before === undefined ? undefined : this.#nodes.get(entry.before);
      if (next?.isConnected) next.before(this.#nodeOf(entry));
      else fresh.append(this.#nodeOf(entry));
      if ((entry.kind === "chat" && !entry.own) || entry.kind === "announce") this.#announcer.message(entry);
    }
    this.#list.firstElementChild.append(fresh);
    if (added.some((entry) => entry.status === "pending")) this.#follow.toEnd();
    this.#follow.came(added.length);
    if (this.#follow.following) this.#scrollToEnd();
    this.#showPill();
  }

  #redraw() {
    for (const entry of this.#messages.entries) this.#replace(entry);
    this.#showPill();
  }

  #replace(entry) {
    const old = this.#nodes.get(entry.key);
    if (!old) return;
    const focused = old === document.activeElement;
    const node = this.#nodeOf(entry);
    old.replaceWith(node);
    if (focused) node.focus({ preventScroll: true });
  }

  #nodeOf(entry) {
    const node = { chat: said, gift: given, notice, announce: announced, custom }[entry.kind](entry, this.#language);
    if (entry.status === "failed") node.append(...this.#fate(entry));
    if (entry.user) {
      node.dataset.key = entry.key;
      node.tabIndex = -1;
      node.toggleAttribute("data-acts", (this.#moderator?.acts(entry).length ?? 0) > 0);
    }
    this.#nodes.set(entry.key, node);
    return node;
  }

  /** By pointer: the name, the button that comes with the pointer, or the right button; by touch the name, or a long press; by keyboard the arrows and Enter. */
  #setUpMenu(signal) {
    const list = this.#list;
    const lineOf = (event) => event.target.closest?.("[data-acts]");
    const openAt = (line, at) => {
      const entry = this.#messages.entries.find((e) => e.key === Number(line.dataset.key));
      if (entry) this.#moderator.open(entry, at);
    };
    const below = (node) => {
      const { left, bottom } = node.getBoundingClientRect();
      return { x: left, y: bottom + 2 };
    };
    this.#more.type = "button";
    this.#more.tabIndex = -1;
    this.#more.append(icon("more"));
    aria(this.#more, "haspopup", "menu");
    list.addEventListener("contextmenu", (event) => {
      const line = lineOf(event);
      if (!line) return;
      event.preventDefault();
      openAt(line, event.clientX || event.clientY ? { x: event.clientX, y: event.clientY } : below(line));
    }, { signal });
    list.addEventListener("click", (event) => {
      const line = lineOf(event);
      const from = event.target.closest?.(".more, .who");
      if (line && from) openAt(line, below(from));
    }, { signal });
    list.addEventListener("pointerover", (event) => {
      const line = lineOf(event);
      if (event.pointerType === "touch" || !line || line.contains(this.#more) || !line.classList.contains("said")) return;
      aria(this.#more, "label", this.#language.text("mod.menu"));
      line.append(this.#more);
    }, { signal });
    list.addEventListener("pointerleave", () => this.#more.remove(), { signal });
    list.addEventListener("keydown", (event) => {
      const lines = [...list.querySelectorAll("[data-key]")];
      const here = lines.indexOf(document.activeElement);
      if (event.key === "Enter" && here >= 0 && lines[here].hasAttribute("data-acts")) openAt(lines[here], below(lines[here]));
      else if (event.key === "ArrowUp" && lines.length > 0) lines[here < 0 ? lines.length - 1 : Math.max(0, here - 1)].focus();
      else if (event.key === "ArrowDown" && here >= 0) lines[Math.min(lines.length - 1, here + 1)].focus();
      else if (event.key === "Escape" && here >= 0) list.focus();
      else return;
      event.preventDefault();
    }, { signal });
  }

  /** Who the reader is has changed: what may be done is looked at anew. */
  rethink() {
    this.#redraw();
  }

  #fate(entry) {
    const again = make("button", "again", this.#language.text("send.again"));
    again.type = "button";
    again.prepend(icon("again"));
    again.addEventListener("click", () => this.#onAgain(entry));
    const why = make("span", "why", whyOf(entry.answer, this.#language, "danmaku"));
    return [again, why];
  }

  #scrolled() {
    const { scrollHeight, scrollTop, clientHeight } = this.#list;
    this.#follow.scrolled(scrollHeight - scrollTop - clientHeight);
    this.#showPill();
  }

  #toEnd() {
    this.#follow.toEnd();
    this.#scrollToEnd();
    this.#showPill();
    this.#list.focus({ preventScroll: true });
  }

  #scrollToEnd() {
    this.#list.scrollTop = this.#list.scrollHeight;
  }

  #showPill() {
    const { unread } = this.#follow;
    this.#pill.hidden = unread === 0;
    if (unread > 0) this.#pill.firstElementChild.textContent = this.#language.text("room.newMessages", { n: unread });
  }

  #announce() {
    const said = this.#announcer.take(performance.now());
    if (!said) return;
    const { last, count } = said;
    const name = last.kind === "announce" ? this.#language.text("room.announcement") : portray(last.user).name;
    this.#heard.textContent = this.#language.text("room.heard", { n: count, name, text: last.text });
  }
}

/** What the platform says of somebody, as far as this page knows the names. */
function honours(user, language) {
  return honoursOf(user).map(({ name, value }) => {
    const badge = make("span", "badge", language.text(`honour.${name}`, { value }));
    badge.dataset.honour = name;
    return badge;
  });
}

function said(entry, language) {
  const node = make("li", entry.own ? "said own" : "said");
  node.dataset.status = entry.status;
  const { name, tone } = portray(entry.user);
  const role = entry.user?.role;
  if (role && role !== "viewer") {
    const badge = make("span", "badge", language.text(`role.${role}`));
    badge.dataset.role = role;
    node.append(badge);
  } else if (!entry.own) {
    const dot = make("span", "dot");
    dot.dataset.tone = tone;
    node.append(dot);
  }
  node.append(...honours(entry.user, language));
  node.append(make("bdi", "who", entry.own ? language.text("room.you") : name));
  if (entry.replyTo && !entry.deleted) node.prepend(make("span", "to", language.text("room.replyTo", { name: portray(entry.replyTo).name })));
  node.append(make("bdi", "text", entry.deleted ? language.text("room.deleted") : entry.text));
  if (entry.deleted) node.dataset.deleted = "";
  else if (entry.status !== "sent") node.append(fate(entry, language));
  return node;
}

function fate(entry, language) {
  const node = make("span", "fate", language.text(`send.${entry.status}`));
  if (entry.status === "hidden") node.prepend(icon("eye"));
  return node;
}

function given(entry, language) {
  const node = make("li", "given");
  node.append(dressGift(entry.gift), ...honours(entry.user, language));
  node.append(make("bdi", "who", entry.own ? language.text("room.you") : portray(entry.user).name));
  node.append(make("span", "what", language.text("room.gave", { gift: giftName(entry.gift, language), n: entry.count })));
  return node;
}

function announced(entry, language) {
  const node = make("li", "announce");
  node.append(icon("horn"), make("b", "", language.text("room.announcement")), make("bdi", "text", entry.text));
  return node;
}

/** Characters shown of an event's data, which may be 4 KiB. */
const DATA_SHOWN = 200;

/** An event of the platform's own; a product has a face of its own for each type. */
function custom(entry, language) {
  const text = typeof entry.data?.text === "string" ? entry.data.text : JSON.stringify(entry.data);
  const node = make("li", "announce");
  node.append(icon("horn"), make("b", "", language.text("room.custom", { type: entry.type })), make("bdi", "text", text.slice(0, DATA_SHOWN)));
  return node;
}

function notice(entry, language) {
  const values = { ...entry.values };
  if (entry.ms !== undefined) values.t = language.duration(entry.ms);
  const node = make("li", "notice", entry.text ?? language.text(entry.word, values));
  if (entry.tone) node.dataset.tone = entry.tone;
  return node;
}
