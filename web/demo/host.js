// The host's desk: the numbers of a room, who is limited in it and why.

import words from "./i18n/admin.js";
import { readQuota, readRefusals } from "./models/desk.js";
import { Messages } from "./models/messages.js";
import { portray } from "./models/person.js";
import { whyOf } from "./models/refusal.js";
import { Chat } from "./views/chat.js";
import { $, dressFace, make } from "./views/dom.js";
import { Figures } from "./views/figures.js";
import { RoomWordCalls } from "./views/lists/calls.js";
import { WordsDesk } from "./views/lists/words.js";
import { Moderator } from "./views/moderator.js";
import { openPage } from "./views/page.js";
import { People } from "./views/people.js";
import { poll } from "./views/poll.js";
import { Review } from "./views/review.js";
import { connect, keepToken, roomOfPage, takeToken } from "./views/session.js";
import { Settings } from "./views/settings.js";
import { Status } from "./views/status.js";
import { fillTable, personCell, row } from "./views/tables.js";

const POLL_MS = 1000;
const FIGURES = [
  ["host.online", "good"], ["host.likes", "bad"], ["host.danmaku", "info"],
  ["host.gifts", "warn"], ["host.likeRate", "bad"], ["host.refusals", "warn"],
];

class Desk {
  #page;
  #room;
  #token;
  #figures;
  #settings;
  #words;
  #moderator;
  #review;
  #messages = new Messages();
  #gifts = [];
  #latest = null;
  #seen = null;

  constructor(page, room, token) {
    this.#page = page;
    this.#room = room;
    this.#token = token;
    const { signal } = page;
    const path = `/api/v1/rooms/${room}`;
    $("desk").hidden = false;
    $("watch").href = `/room/${room}`;
    $("summary").href = `/host/${room}/summary`;
    $("room-id").textContent = `/${room}`;
    this.#figures = new Figures($("tiles"), FIGURES, page);
    this.#settings = new Settings(path, () => token, page);
    this.#words = new WordsDesk(new RoomWordCalls(room, token, page), page);
    this.#listen(path, signal);
    new People(path, () => token, page, (user) => this.#moderator.who(user));
    page.onLanguage(() => this.#show());
    poll(path, { ms: POLL_MS, token: () => token, signal, onAnswer: (answer) => this.#answer(answer) });
  }

  #answer({ status, body }) {
    $("trouble").hidden = status === 200;
    if (status === 401 || status === 403) {
      keepToken(null);
      history.replaceState({ refused: true }, "");
      location.reload();
      return;
    }
    if (status !== 200) return;
    this.#latest = body;
    this.#settings.show(body);
    this.#words.arrived(body.filter ?? { words: [] });
    this.#review.room(body);
    this.#count(body);
    this.#show();
  }

  #count(body) {
    const { language } = this.#page;
    const rates = body.rates ?? {};
    const people = body.people ?? body.online;
    this.#figures.set("host.online", people, language.compact(people));
    this.#figures.set("host.likes", body.likes, language.compact(body.likes));
    this.#figures.set("host.danmaku", rates.danmaku, language.rate(rates.danmaku ?? 0));
    this.#figures.set("host.gifts", rates.gift, language.rate(rates.gift ?? 0));
    this.#figures.set("host.likeRate", rates.like, language.rate(rates.like ?? 0));
    const refused = rates.refused ?? this.#newRefusals(body);
    this.#figures.set("host.refusals", refused, language.rate(refused));
  }

  /** Where the room tells no rate of refusals: how many lines of the list are new or have grown. */
  #newRefusals(body) {
    const before = this.#seen;
    this.#seen = new Map(readRefusals(body).map((r) => [`${r.user.id}\n${r.action}\n${r.answer.rule}\n${r.answer.reason}`, r.count]));
    if (before === null) return 0;
    let grown = 0;
    for (const [key, count] of this.#seen) grown += Math.max(0, count - (before.get(key) ?? 0));
    return (grown * 1000) / POLL_MS;
  }

  #show() {
    const body = this.#latest;
    if (!body) return;
    const title = body.title || this.#room;
    document.title = `${title} · ${this.#page.language.text("host.title")}`;
    $("title").textContent = title;
    $("room-title").placeholder = this.#room;
    dressFace($("face"), portray({ id: this.#room, name: title }));
    this.#showLimited(readRefusals(body));
    this.#showQuota(readQuota(body));
  }

  #showLimited(refusals) {
    const { language } = this.#page;
    fillTable($("limited"), $("limited-none"), refusals.slice(0, 20).map((r) => row([
      personCell(r.user, (user) => this.#moderator.who(user)), this.#action(r.action), whyOf(r.answer, language, r.action, "them"),
      make("span", "mono", r.answer.rule ?? ""), language.number(r.count),
      r.ageMs < 2000 ? language.text("host.now") : language.text("host.ago", { t: language.duration(r.ageMs) }),
    ], [4, 5])));
  }

  #showQuota(quota) {
    const { language } = this.#page;
    $("quota-none").hidden = quota.length > 0;
    $("quotas").replaceChildren(...quota.map((q) => {
      const item = make("li", "quota");
      item.toggleAttribute("data-low", q.low);
      const line = make("div", "line");
      line.append(make("b", "", this.#action(q.action)), make("span", "verdict", language.text(q.low ? "host.quotaHeld" : "host.quotaOk")));
      const meter = make("div", "meter");
      const fill = make("i");
      fill.style.transform = `scaleX(${q.share.toFixed(3)})`;
      meter.append(fill);
      item.append(line, make("div", "mono", q.rule), meter, make("p", "number", language.text("host.quotaLeft", { n: q.level, burst: q.burst, rate: q.perSecond })));
      return item;
    }));
  }

  #action(action) {
    const { language } = this.#page;
    return language.has(`host.action.${action}`) ? language.text(`host.action.${action}`) : action;
  }

  #listen(path, signal) {
    const connection = connect(this.#room, this.#token, this.#page);
    this.#moderator = new Moderator(connection, path, () => this.#token, this.#page, { onDone: () => this.#review.read() });
    this.#review = new Review(path, () => this.#token, this.#moderator, this.#page);
    const chat = new Chat({ list: $("chat"), pill: $("pill"), heard: $("heard") }, this.#messages, { ...this.#page, moderator: this.#moderator, onAgain: () => {} });
    const on = (name, listener) => connection.on(name, listener, { signal });
    on("welcome", (welcome) => {
      this.#messages.self = welcome.user.id;
      this.#gifts = welcome.gifts ?? [];
    });
    on("event", (event) => {
      if (event.ev === "danmaku") this.#messages.danmaku(event);
      if (event.ev === "deleted") this.#messages.remove(event.mid);
      if (event.ev === "restored") this.#messages.restore(event.message);
      this.#review.event(event);
      if (event.ev === "erased") this.#messages.erase(event);
      if (event.ev === "gifts") this.#gifts = event.gifts;
      if (event.ev === "gift") {
        const gift = this.#gifts.find((g) => g.id === event.gift) ?? { id: event.gift, name: event.gift };
        this.#messages.note({ kind: "gift", user: event.user, gift, count: event.count, ts: event.ts });
      }
    });
    on("flush", () => chat.changed());
    new Status(connection, this.#page);
    connection.start();
  }
}

/** Asks for a token when the page came without one. */
function showDoor({ language, signal }) {
  $("door").hidden = false;
  if (history.state?.refused) {
    $("door-hint").dataset.t = "host.refused";
    $("door-hint").textContent = language.text("host.refused");
    history.replaceState(null, "");
  }
  $("door-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const token = $("token").value.trim();
    if (token === "") return;
    keepToken(token);
    location.reload();
  }, { signal });
}

const room = roomOfPage();
if (room === null) location.replace("/");
else {
  const page = openPage(words);
  const token = takeToken();
  if (token) new Desk(page, room, token);
  else showDoor(page);
}
