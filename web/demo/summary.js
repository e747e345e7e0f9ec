// A show, when it is over: who came, what was said and given, who was limited and why. It can be printed.

import { whyOf } from "./models/refusal.js";
import { Series } from "./models/series.js";
import { readSummary } from "./models/summary.js";
import { $, make } from "./views/dom.js";
import { openPage } from "./views/page.js";
import { get } from "./views/poll.js";
import { roomOfPage, takeToken } from "./views/session.js";
import { fillFacts, fillTable, personCell, row } from "./views/tables.js";

const BOX = { width: 900, height: 120 };

class Summary {
  #page;
  #path;
  #token;
  #summary = null;

  constructor(page, room, token) {
    this.#page = page;
    this.#path = `/api/v1/rooms/${room}/summary`;
    this.#token = token;
    const { signal } = page;
    $("desk").href = `/host/${room}`;
    $("print").addEventListener("click", () => print(), { signal });
    $("csv").addEventListener("click", () => this.#save(room), { signal });
    $("shows").addEventListener("change", () => this.#read($("shows").value), { signal });
    page.onLanguage(() => this.#show());
    this.#read("");
  }

  async #read(begin) {
    const { status, body } = await get(`${this.#path}?show=${begin || 0}`, this.#token, this.#page.signal);
    this.#summary = status === 200 ? readSummary(body) : null;
    $("trouble").hidden = this.#summary !== null;
    $("trouble").dataset.t = status === 404 ? "sum.none" : status === 401 || status === 403 ? "host.refused" : "host.failed";
    $("trouble").textContent = this.#page.language.text($("trouble").dataset.t);
    $("report").hidden = this.#summary === null;
    this.#show();
  }

  async #save(room) {
    const { status, body } = await get(`${this.#path}?format=csv&show=${this.#summary?.show.begin ?? 0}`, this.#token, this.#page.signal, "text");
    if (status !== 200) return;
    const link = make("a");
    link.href = URL.createObjectURL(new Blob([body], { type: "text/csv" }));
    link.download = `${room}.csv`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href));
  }

  #show() {
    const s = this.#summary;
    if (!s) return;
    const { language } = this.#page;
    const day = (ms) => new Intl.DateTimeFormat(language.code, { dateStyle: "medium", timeStyle: "short" }).format(ms);
    document.title = `${s.title} · ${language.text("sum.title")}`;
    $("title").textContent = s.title;
    $("when").textContent = s.show.end ? `${day(s.show.begin)} – ${day(s.show.end)}` : language.text("sum.since", { t: day(s.show.begin) });
    $("shows").replaceChildren(...s.shows.map((begin) => new Option(day(begin), begin, false, begin === s.show.begin)));
    fillFacts($("facts"), [
      [language.text("sum.duration"), language.duration(s.durationMs)],
      [language.text("sum.people"), s.show.exact ? language.number(s.show.people) : language.text("sum.about", { n: s.show.people })],
      [language.text("sum.peak"), `${language.number(s.show.peak)} · ${language.clock(s.show.peakAt)}`],
      [language.text("sum.danmaku"), language.number(s.danmaku)],
      [language.text("sum.gifts"), language.text(s.gifts.partial ? "sum.giftsSaidPart" : "sum.giftsSaid", { n: s.gifts.count, value: s.gifts.value, givers: s.gifts.givers })],
    ]);
    draw($("people-curve"), s.show.minutes);
    draw($("danmaku-curve"), s.byMinute);
    const given = (g) => row([make("bdi", "", g.name), language.number(g.count), language.number(g.value)], [1, 2]);
    fillTable($("by-gift"), $("by-gift-none"), s.gifts.byGift.map(given));
    fillTable($("by-giver"), $("by-giver-none"), s.gifts.byGiver.map(given));
    fillTable($("refused"), $("refused-none"), s.refused.map((r) => row([
      r.user.id ? personCell(r.user) : language.text("sum.others"), this.#action(r.action), whyOf(r.answer, language, r.action, "them"), make("span", "mono", r.answer.rule ?? ""), language.number(r.count),
    ], [4])));
    fillTable($("acts"), $("acts-none"), s.acts.map((a) => row([language.clock(a.time), make("bdi", "", a.by), make("span", "mono", a.action), make("bdi", "", a.user), a.seconds ? language.duration(a.seconds * 1000) : "", make("bdi", "", a.reason)])));
  }

  #action(action) {
    const { language } = this.#page;
    return language.has(`host.action.${action}`) ? language.text(`host.action.${action}`) : action;
  }
}

/** A line needs two minutes; before there is no panel for it. */
function draw(svg, values) {
  svg.parentElement.hidden = values.length < 2;
  const series = new Series(values.length);
  series.fill(values);
  svg.setAttribute("viewBox", `0 0 ${BOX.width} ${BOX.height}`);
  svg.firstElementChild.setAttribute("points", series.points(BOX.width, BOX.height));
}

const room = roomOfPage();
if (room === null) location.replace("/");
else {
  const page = openPage();
  const token = takeToken();
  if (token) new Summary(page, room, token);
  else location.replace(`/host/${room}`);
}
