// The largest rooms with what they were refused: the list says how large, each room's own answer says who.

import { readRefusals } from "../../models/desk.js";
import { RefusalCount } from "../../models/limits/refusals.js";
import { readRooms } from "../../models/roster.js";
import { $, make } from "../dom.js";
import { get, poll } from "../poll.js";
import { fillTable, row, stacked } from "../tables.js";

const POLL_MS = 3000;
const MOST_ROOMS = 10;

export class Rooms {
  #page;
  #token;
  #rooms = [];
  #refusals = new Map();
  #onWhy;

  /** `onWhy` gets `{action, room, user}` of somebody who was refused. */
  constructor(token, page, onWhy) {
    this.#page = page;
    this.#token = token;
    this.#onWhy = onWhy;
    poll("/api/v1/rooms?limit=100", { ms: POLL_MS, signal: page.signal, token: () => token, onAnswer: ({ status, body }) => {
      if (status !== 200) return;
      this.#rooms = readRooms(body).slice(0, MOST_ROOMS);
      this.#look();
    } });
    page.onLanguage(() => this.#show());
  }

  async #look() {
    await Promise.all(this.#rooms.map(async ({ id }) => {
      const { status, body } = await get(`/api/v1/rooms/${id}`, this.#token, this.#page.signal);
      if (status === 200) this.#take(id, readRefusals(body));
    }));
    if (!this.#page.signal.aborted) this.#show();
  }

  #take(id, refusals) {
    if (!this.#refusals.has(id)) this.#refusals.set(id, { count: new RefusalCount(), last: null });
    const room = this.#refusals.get(id);
    room.count.take(refusals, performance.now());
    room.last = refusals[0] ?? null;
  }

  #show() {
    const { language } = this.#page;
    fillTable($("rooms"), $("rooms-none"), this.#rooms.map((r) => {
      const { count, last } = this.#refusals.get(r.id) ?? {};
      const n = count?.sum ?? 0;
      return row([stacked(make("bdi", "", r.title), r.title === r.id ? "" : `/${r.id}`), language.compact(r.online), language.rate(r.danmaku), language.compact(r.likes),
        make("b", n > 0 ? "bad" : "soft", language.compact(n)), this.#who(last, r.id)], [1, 2, 3, 4]);
    }));
  }

  #who(last, room) {
    if (!last) return "";
    const { user, answer, action } = last;
    const why = make("button", "open", user.name || user.id);
    why.type = "button";
    why.title = this.#page.language.text("admin.why");
    why.addEventListener("click", () => this.#onWhy({ action: action || "danmaku", room, user: user.id }));
    return stackedNodes(why, answer.rule);
  }
}

function stackedNodes(first, below) {
  const cell = document.createDocumentFragment();
  cell.append(first);
  if (below) cell.append(make("small", "mono", below));
  return cell;
}
