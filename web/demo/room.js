// The room page: wires the connection to models and views.

import { give } from "../client/giving.js";
import { LikeTotal } from "./models/likes.js";
import { Messages } from "./models/messages.js";
import { isStaff } from "./models/moderation.js";
import { portray } from "./models/person.js";
import { explain } from "./models/refusal.js";
import { Banners } from "./views/banners.js";
import { Chat } from "./views/chat.js";
import { Composer } from "./views/composer.js";
import { Danmaku } from "./views/danmaku.js";
import { $, aria, dressFace, make, radios, saved } from "./views/dom.js";
import { giftName } from "./views/gift-face.js";
import { Hearts } from "./views/hearts.js";
import { Moderator } from "./views/moderator.js";
import { openPage } from "./views/page.js";
import { bearer, connect, roomOfPage, takeToken } from "./views/session.js";
import { Stage } from "./views/stage/stage.js";
import { Status, whyOf } from "./views/status.js";
import { Tray } from "./views/tray.js";

/** Of a room's rules what an event leaves out while it is so. */
const USUAL = { speak: "all", follow_minutes: 0, emoji_only: false, links_off: false };
const DENSITIES = ["0", "0.25", "0.5", "1"];
/** Notices of the same kind are not repeated within this time. */
const NOTICE_EVERY_MS = 3000;

class RoomPage {
  #page;
  #room;
  #still = matchMedia("(prefers-reduced-motion: reduce)");
  #connection;
  #messages = new Messages();
  #likes = new LikeTotal();
  #state = { title: "", people: 0, slow_mode_ms: 0, closed: false, pinned: null, ...USUAL };
  #self = null;
  #giftRetryMs = 600_000;
  #combos = new Map();
  #noticedAt = new Map();
  #chat;
  #composer;
  #danmaku;
  #stage;
  #tray;
  #banners;
  #hearts;

  constructor(page, room) {
    this.#page = page;
    this.#room = room;
    const { signal } = page;
    const token = takeToken();
    this.#connection = connect(room, token, page);
    this.#stage = new Stage($("scene"), room, { signal, still: this.#still });
    this.#danmaku = new Danmaku($("danmaku"), { signal });
    const moderator = new Moderator(this.#connection, `/api/v1/rooms/${room}`, () => bearer(token), page, { onReply: (entry) => this.#composer.replyTo(entry) });
    this.#chat = new Chat({ list: $("chat"), pill: $("pill"), heard: $("heard") }, this.#messages, { ...page, moderator, onAgain: (entry) => this.#again(entry) });
    this.#composer = new Composer({ ...page, onSend: (text, style) => this.#say(text, style) });
    this.#tray = new Tray({ ...page, onGive: (gift, count) => this.#give(gift, count) });
    this.#banners = new Banners($("banners"), (id) => this.#tray.find(id), page);
    this.#hearts = new Hearts($("like"), $("hearts"), { signal, still: this.#still, onLikes: (count) => this.#like(count) });
    new Status(this.#connection, page);
    page.onLanguage(() => this.#show());
    this.#setUpControls(signal);
    this.#listen(signal);
    this.#show();
    this.#connection.start();
  }

  #listen(signal) {
    const on = (name, listener) => this.#connection.on(name, listener, { signal });
    on("welcome", (welcome) => this.#welcome(welcome));
    on("event", (event) => this.#on[event.ev]?.(event));
    on("hole", () => this.#notice("room.hole", { tone: "warn" }));
    on("flush", () => this.#chat.changed());
    on("state", () => this.#bar());
  }

  #welcome(welcome) {
    this.#self = welcome.user;
    this.#messages.self = welcome.user.id;
    this.#giftRetryMs = welcome.gift_retry_ms ?? this.#giftRetryMs;
    this.#tray.take(welcome);
    this.#likes.take(welcome.room.likes);
    const before = welcome.resumed ? this.#state : { ...this.#state, ...USUAL, closed: false, slow_mode_ms: 0 };
    this.#state = { ...this.#state, ...USUAL, ...welcome.room };
    this.#show();
    this.#messages.note(welcome.resumed ? { kind: "notice", word: isWhole(welcome) ? "room.resumed" : "room.resumedPartly" }
      : { kind: "notice", word: "room.entered", values: { title: this.#title, name: portray(welcome.user).name } });
    this.#tellOf(before);
  }

  #on = {
    danmaku: (event) => {
      const entry = this.#messages.danmaku(event);
      if (!entry) return;
      this.#stage.danmaku();
      if (!event.replayed || entry.own) this.#danmaku.show(entry);
    },
    gift: (event) => this.#gift(event),
    like: ({ delta, total }) => {
      this.#likes.take(total);
      this.#hearts.came(delta);
      this.#stage.likes(delta);
      this.#showLikes();
    },
    online: ({ count, people = count }) => {
      this.#state.people = people;
      this.#showOnline();
    },
    room: (event) => this.#changed(event),
    deleted: ({ mid }) => {
      this.#messages.remove(mid);
      this.#danmaku.remove(mid);
    },
    restored: ({ message }) => this.#messages.restore(message),
    held: ({ mid, state }) => state === "dropped" && this.#messages.decide(mid, "dropped"),
    role: ({ role }) => this.#ranked(role),
    erased: (event) => {
      for (const mid of this.#messages.erase(event)) this.#danmaku.remove(mid);
    },
    muted: ({ seconds }) => this.#muted(seconds),
    announce: ({ text }) => this.#messages.note({ kind: "announce", text }),
    gifts: (event) => this.#tray.take(event),
    custom: ({ type, data }) => this.#messages.note({ kind: "custom", type, data }),
    missed: ({ danmaku }) => this.#notice("room.missed", { values: { n: danmaku } }),
    error: (event) => this.#refused(event),
  };

  async #say(text, { color, mode, replyTo, reply = replyTo?.mid }, id = this.#connection.nextId()) {
    const entry = this.#messages.send(id, { user: this.#self, text, color, mode, reply, replyTo: replyTo?.user ?? replyTo ?? undefined });
    this.#chat.changed();
    const answer = await this.#connection.request("danmaku", { text, color, mode, reply }, { id });
    this.#messages.answer(id, answer);
    this.#chat.changed();
    if (answer.code === 200 || answer.code === 202) {
      if (entry.status !== "held") this.#danmaku.show(entry);
      if (this.#state.slow_mode_ms > 0 && !this.#exempt) this.#composer.hold({ reason: "slow_mode", retry_after_ms: this.#state.slow_mode_ms });
    } else if (answer.retry_after_ms > 0) {
      this.#composer.hold(answer);
    }
  }

  /** What was lost on the way goes with its old id, so that it can't be said twice; what was refused with a new one. */
  #again(entry) {
    this.#messages.discard(entry.key);
    this.#say(entry.text, entry, entry.answer.code === 0 ? entry.clientId : undefined);
    this.#composer.focus();
  }

  async #give(gift, count) {
    const { language, signal } = this.#page;
    const name = giftName(gift, language);
    const answer = await give(this.#connection, { gift: gift.id, count }, {
      withinMs: this.#giftRetryMs, signal, onUnsure: () => this.#notice("gift.unknown", { values: { gift: name }, tone: "warn" }),
    });
    if (answer.code === 200) return;
    if (answer.unsure) {
      this.#notice("gift.unknown", { text: language.text("gift.neverKnown", { gift: name }), tone: "bad" });
      return;
    }
    const why = explain(answer, language, { op: "gift" });
    this.#notice(`refused.gift.${answer.reason}`, { text: language.text("gift.failed", { gift: name, why }), tone: "bad" });
  }

  async #like(count) {
    const answer = await this.#connection.request("like", { count });
    if (answer.code >= 400 && answer.reason !== "rate_limited") this.#refused(answer, "like");
  }

  #gift(event) {
    const gift = this.#tray.find(event.gift);
    const worth = (gift.price || 1) * event.count;
    const id = `${event.user.id}\n${event.gift}`;
    const before = this.#combos.get(id);
    const goesOn = before && event.combo > event.count && this.#messages.update(before, { count: event.combo });
    if (!goesOn) {
      const entry = this.#messages.note({ kind: "gift", user: event.user, own: event.user.id === this.#self?.id, gift, count: Math.max(event.combo ?? 0, event.count), ts: event.ts });
      this.#combos.delete(id);
      this.#combos.set(id, entry);
      if (this.#combos.size > 60) this.#combos.delete(this.#combos.keys().next().value);
    }
    this.#banners.gift(event, worth);
    this.#stage.gift(worth);
  }

  #changed(event) {
    const before = this.#state;
    this.#state = { ...before, ...USUAL, ...event };
    this.#tellOf(before);
    this.#show();
  }

  /** Says what of the room's rules is otherwise than before. */
  #tellOf(before) {
    const { closed, slow_mode_ms: slowMs, speak, emoji_only: emoji, links_off: links } = this.#state;
    if (closed !== before.closed) this.#notice(closed ? "room.closed" : "room.opened", { tone: "warn" });
    if (slowMs !== before.slow_mode_ms) this.#notice(slowMs > 0 ? "room.slowOn" : "room.slowOff", { ms: slowMs, tone: "warn" });
    if (speak !== before.speak) this.#notice(`room.speak.${speak}`, { ms: this.#state.follow_minutes * 60_000, tone: "warn" });
    if (emoji !== before.emoji_only) this.#notice(emoji ? "room.emojiOn" : "room.emojiOff", { tone: "warn" });
    if (links !== before.links_off) this.#notice(links ? "room.linksOff" : "room.linksOn", { tone: "warn" });
  }

  #ranked(role) {
    const before = isStaff(this.#self.role);
    this.#self = { ...this.#self, role };
    this.#notice(isStaff(role) ? "room.appointed" : "room.dismissed", { tone: "warn" });
    if (before !== isStaff(role)) this.#chat.rethink();
    this.#bar();
  }

  /** Takes away what can't be done now: in a closed room, and for whom the server will not have. */
  #bar() {
    const { phase, close } = this.#connection.state;
    const word = phase === "refused" ? (whyOf(close) === "banned" ? "why.banned" : "send.barred") : this.#state.closed ? "room.closed" : null;
    this.#composer.barred = word;
    this.#composer.slowMs = this.#exempt ? 0 : this.#state.slow_mode_ms;
    this.#tray.off = word !== null;
    $("like").disabled = word !== null;
  }

  #muted(seconds) {
    if (seconds > 0) {
      this.#notice("room.muted", { ms: seconds * 1000, tone: "bad" });
      this.#composer.hold({ reason: "muted", retry_after_ms: seconds * 1000 });
    } else {
      this.#notice("room.unmuted", {});
      this.#composer.release();
    }
  }

  #refused(answer, op) {
    this.#notice(`refused.${op}.${answer.reason}`, { text: explain(answer, this.#page.language, { op }), tone: "bad" });
  }

  #notice(word, fields) {
    const now = performance.now();
    if (now - (this.#noticedAt.get(word) ?? -Infinity) < NOTICE_EVERY_MS) return;
    this.#noticedAt.set(word, now);
    this.#messages.note({ kind: "notice", word, ...fields });
    this.#chat.changed();
  }

  get #exempt() {
    return isStaff(this.#self?.role);
  }

  get #title() {
    return this.#state.title || this.#room;
  }

  #setUpControls(signal) {
    const wanted = saved.get("density") ?? (this.#still.matches ? "0" : "0.5");
    const density = DENSITIES.includes(wanted) ? wanted : "0.5";
    this.#danmaku.density = Number(density);
    radios($("density"), "density", DENSITIES, density, (value) => {
      const face = make("span");
      face.dataset.t = `room.density.${value}`;
      face.textContent = this.#page.language.text(face.dataset.t);
      return face;
    }, (value) => {
      saved.set("density", value);
      this.#danmaku.density = Number(value);
    }, signal);
    const open = $("density-open");
    open.addEventListener("click", () => {
      $("density").hidden = !$("density").hidden;
      aria(open, "expanded", String(!$("density").hidden));
    }, { signal });
    const full = $("fullscreen");
    full.hidden = !document.fullscreenEnabled;
    full.addEventListener("click", () => {
      if (document.fullscreenElement) document.exitFullscreen();
      else $("stage").requestFullscreen().catch(() => {});
    }, { signal });
    document.addEventListener("keydown", (event) => this.#key(event), { signal });
  }

  /** “/” goes to the send box, “l” likes, also when held. */
  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
    if (event.key === "/") {
      event.preventDefault();
      this.#composer.focus();
    }
    if (event.key === "l") this.#hearts.tap();
  }

  #show() {
    const { language } = this.#page;
    const { closed, pinned } = this.#state;
    document.title = `${this.#title} · liveroom`;
    $("title").textContent = this.#title;
    $("room-id").textContent = `/${this.#room}`;
    dressFace($("host-face"), portray({ id: this.#room, name: this.#title }));
    aria($("scene"), "label", language.text("room.stage", { title: this.#title }));
    $("live-badge").toggleAttribute("data-closed", closed);
    $("live-badge").firstElementChild.dataset.t = closed ? "app.closed" : "app.live";
    $("live-badge").firstElementChild.textContent = language.text(closed ? "app.closed" : "app.live");
    $("pinned").hidden = !pinned;
    if (pinned) $("pinned").lastElementChild.replaceChildren(make("bdi", "who", portray(pinned.user).name), ": ", make("bdi", "text", pinned.text));
    this.#bar();
    this.#showOnline();
    this.#showLikes();
  }

  #showOnline() {
    const { language } = this.#page;
    $("online").lastElementChild.textContent = language.compact(this.#state.people);
    $("online").title = language.text("room.online", { n: this.#state.people });
  }

  #showLikes() {
    const { language } = this.#page;
    $("likes").lastElementChild.textContent = language.compact(this.#likes.value);
    $("likes").title = language.text("room.likes", { n: this.#likes.value });
  }
}

/** Whether a resume brought back everything that was missed. */
function isWhole({ recovered }) {
  return recovered?.gift !== false && recovered?.chat !== false;
}

const room = roomOfPage();
if (room === null) location.replace("/");
else new RoomPage(openPage(), room);
