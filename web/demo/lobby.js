// The lobby: the live rooms, and a door to any other.

import { ROOM_PATTERN } from "../client/codes.js";
import { portray } from "./models/person.js";
import { readRooms, totalOnline } from "./models/roster.js";
import { $, aria, dressFace, icon, make } from "./views/dom.js";
import { openPage } from "./views/page.js";
import { poll } from "./views/poll.js";
import { drawPoster } from "./views/poster.js";

const POLL_MS = 3000;
const POSTER = { width: 560, height: 315 };

class Lobby {
  #language;
  #rooms = null;
  #tiles = new Map();

  constructor({ language, signal, onLanguage }) {
    this.#language = language;
    drawPoster($("picture"), "demo");
    onLanguage(() => this.#show());
    $("enter").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#enter();
    }, { signal });
    $("name").addEventListener("input", () => this.#hint("lobby.enterHint", ""), { signal });
    this.#hint("lobby.enterHint", "");
    poll("/api/v1/rooms", { ms: POLL_MS, signal, onAnswer: ({ status, body }) => {
      $("trouble").hidden = status === 200;
      if (status !== 200) return;
      this.#rooms = readRooms(body);
      this.#show();
    } });
  }

  #enter() {
    const name = $("name").value.trim();
    if (ROOM_PATTERN.test(name)) location.assign(`/room/${name}`);
    else this.#hint("lobby.enterBad", "bad");
  }

  #hint(word, tone) {
    const hint = $("name-hint");
    hint.dataset.t = word;
    hint.dataset.tone = tone;
    hint.textContent = this.#language.text(word);
    aria($("name"), "invalid", String(tone === "bad"));
  }

  /** Tiles are kept by room, so that neither focus nor pictures are lost when the order changes. */
  #show() {
    if (this.#rooms === null) return;
    const rooms = this.#rooms;
    $("nobody").hidden = rooms.length > 0;
    $("total").textContent = rooms.length > 0 ? this.#total(rooms) : "";
    for (const [id, tile] of this.#tiles) {
      if (rooms.some((room) => room.id === id)) continue;
      tile.item.remove();
      this.#tiles.delete(id);
    }
    rooms.forEach((room, place) => {
      const tile = this.#tiles.get(room.id) ?? this.#makeTile(room);
      this.#fill(tile, room);
      if ($("rooms").children[place] !== tile.item) $("rooms").insertBefore(tile.item, $("rooms").children[place] ?? null);
    });
  }

  #total(rooms) {
    const count = this.#language.text("lobby.count", { n: rooms.length });
    return this.#language.text("lobby.total", { n: this.#language.compact(totalOnline(rooms)), rooms: count });
  }

  #makeTile(room) {
    const item = make("li");
    const link = make("a", "tile");
    link.href = `/room/${room.id}`;
    const picture = make("div", "picture");
    const canvas = make("canvas");
    Object.assign(canvas, POSTER);
    aria(canvas, "hidden", "true");
    const watching = make("span", "watching number");
    const watchers = make("span");
    watching.append(icon("people"), watchers);
    const mark = make("span", "mark");
    picture.append(canvas, mark, watching);
    const label = make("div", "label");
    const names = make("div");
    const title = make("h3");
    names.append(title, make("span", "mono", `/${room.id}`));
    const loved = make("span", "loved number");
    const likes = make("span");
    loved.append(icon("heart"), likes);
    const face = make("span");
    label.append(face, names, loved);
    link.append(picture, label);
    item.append(link);
    requestAnimationFrame(() => drawPoster(canvas, room.id));
    const tile = { item, link, watchers, mark, title, likes, face };
    this.#tiles.set(room.id, tile);
    return tile;
  }

  #fill(tile, room) {
    const language = this.#language;
    tile.title.textContent = room.title;
    tile.watchers.textContent = language.compact(room.online);
    tile.likes.textContent = language.compact(room.likes);
    tile.mark.textContent = language.text(room.closed ? "app.closed" : "app.live");
    tile.mark.toggleAttribute("data-closed", room.closed);
    tile.link.title = language.text("lobby.open", { title: room.title, n: room.online });
    dressFace(tile.face, portray({ id: room.id, name: room.title }));
  }
}

new Lobby(openPage());
