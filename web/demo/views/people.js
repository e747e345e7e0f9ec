// The host's panel of who is in the room, and has been in the show.

import { readPeople } from "../models/people.js";
import { Series } from "../models/series.js";
import { $, make } from "./dom.js";
import { poll } from "./poll.js";
import { fillTable, personCell, row } from "./tables.js";

const POLL_MS = 3000;
const SHOWN = 20;
const BOX = { width: 600, height: 80 };

export class People {
  #page;
  #latest = null;
  #curve = new Series(24 * 60 + 1);

  #onOpen;

  /** `path` is the room's in the API; `onOpen(user)` is asked to say more. */
  constructor(path, token, page, onOpen) {
    this.#onOpen = onOpen;
    this.#page = page;
    $("people-curve").setAttribute("viewBox", `0 0 ${BOX.width} ${BOX.height}`);
    page.onLanguage(() => this.#show());
    poll(`${path}/people?limit=${SHOWN}`, { ms: POLL_MS, token, signal: page.signal, onAnswer: ({ status, body }) => {
      if (status !== 200) return;
      this.#latest = readPeople(body);
      this.#show();
    } });
  }

  #show() {
    if (!this.#latest) return;
    const { language } = this.#page;
    const { now, sessions, show, people, more } = this.#latest;
    const said = [language.text("host.peopleNow", { n: now, sessions })];
    if (show) {
      said.push(language.text(show.exact ? "host.peopleShow" : "host.peopleShowAbout", { n: show.people }));
      said.push(language.text("host.peoplePeak", { n: show.peak, t: language.clock(show.peakAt) }));
    }
    $("people-said").textContent = said.join(" · ");
    this.#curve.fill(show?.minutes ?? []);
    const points = this.#curve.points(BOX.width, BOX.height);
    $("people-curve").toggleAttribute("hidden", points === "");
    $("people-curve").firstElementChild.setAttribute("points", points);
    fillTable($("people"), $("people-none"), people.map((p) => row([
      personCell(p.user, this.#onOpen), p.role === "viewer" ? "" : make("span", "mono", language.text(`role.${p.role}`)),
      language.clock(p.since), language.number(p.sessions),
    ], [2, 3])));
    $("people-more").hidden = !more;
    if (more) $("people-more").textContent = language.text("host.peopleMore", { n: Math.max(0, now - people.length) });
  }
}
