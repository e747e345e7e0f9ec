// The operator's page of one node: its numbers, its rooms, and what its rules decided.

import { CLOSE_CODES } from "../client/codes.js";
import { Metrics } from "./models/metrics.js";
import { readRooms } from "./models/roster.js";
import { Rate } from "./models/series.js";
import { $, make } from "./views/dom.js";
import { Figures } from "./views/figures.js";
import { openPage } from "./views/page.js";
import { poll } from "./views/poll.js";
import { takeToken } from "./views/session.js";
import { fillFacts, fillTable, row, stacked } from "./views/tables.js";

const POLL_MS = 2000;
const DECISIONS = "liveroom_limit_decisions_total";
const FIGURES = [
  ["admin.sessions", "good"], ["admin.rooms", "info"], ["admin.admitted", "info"],
  ["admin.deliveries", "good"], ["admin.refused", "bad"], ["admin.dropped", "warn"],
];
const MOST_ROOMS = 50;

class Admin {
  #language;
  #figures;
  #rates = new Map();
  #ready = null;
  #metrics = null;
  #rooms = null;

  constructor(page) {
    this.#language = page.language;
    this.#figures = new Figures($("tiles"), FIGURES, page);
    document.title = "liveroom";
    const token = takeToken();
    const ask = (path, options, onAnswer) => poll(path, { ms: POLL_MS, signal: page.signal, ...options, onAnswer });
    ask("/readyz", {}, (answer) => this.#readiness(answer));
    ask("/metrics", { as: "text" }, ({ status, body }) => {
      if (status !== 200) return;
      this.#metrics = new Metrics(body);
      this.#count();
      this.#show();
    });
    ask("/api/v1/rooms", { token: () => token }, ({ status, body }) => {
      if (status !== 200) return;
      this.#rooms = readRooms(body);
      this.#show();
    });
    page.onLanguage(() => this.#show());
  }

  #readiness({ status, body }) {
    $("trouble").hidden = status !== 0;
    this.#ready = { ...body, status };
    this.#showState();
  }

  #showState() {
    const { status = 0, degraded = [] } = this.#ready ?? {};
    const chip = $("state");
    chip.dataset.phase = status !== 200 ? "offline" : degraded.length > 0 ? "waiting" : "live";
    chip.textContent = status !== 200 ? this.#language.text("admin.status.down")
      : degraded.length > 0 ? this.#language.text("admin.status.degraded", { what: degraded.join(", ") })
      : this.#language.text("admin.status.ok");
  }

  #count() {
    const m = this.#metrics;
    const language = this.#language;
    const plain = (word, value) => this.#figures.set(word, value, language.compact(value));
    const rate = (word, total) => {
      const value = this.#rate(word, total);
      if (value !== null) this.#figures.set(word, value, language.rate(value));
    };
    plain("admin.sessions", m.sum("liveroom_sessions"));
    plain("admin.rooms", m.sum("liveroom_rooms"));
    rate("admin.admitted", m.sum("liveroom_messages_total"));
    rate("admin.deliveries", m.sum("liveroom_deliveries_total"));
    rate("admin.refused", m.sum(DECISIONS, { outcome: "reject" }));
    rate("admin.dropped", m.sum("liveroom_dropped_total"));
  }

  #rate(key, total) {
    if (!this.#rates.has(key)) this.#rates.set(key, new Rate());
    return this.#rates.get(key).take(total, performance.now());
  }

  #show() {
    this.#showState();
    if (this.#metrics) {
      this.#showDecisions(this.#metrics);
      this.#showNode(this.#metrics);
    }
    if (this.#rooms) this.#showRooms(this.#rooms);
  }

  #showDecisions(m) {
    const language = this.#language;
    const rules = m.by(DECISIONS, "rule", "scope", "action").map(({ labels }) => ({
      ...labels,
      allow: m.sum(DECISIONS, { ...labels, outcome: "allow" }),
      degrade: m.sum(DECISIONS, { ...labels, outcome: "degrade" }),
      reject: m.sum(DECISIONS, { ...labels, outcome: "reject" }),
    })).filter((r) => r.allow + r.degrade + r.reject > 0);
    rules.sort((a, b) => b.reject + b.degrade - a.reject - a.degrade || b.allow - a.allow);
    fillTable($("decisions"), $("decisions-none"), rules.map((r) => row([
      make("span", "mono", r.rule), r.scope, r.action,
      language.compact(r.allow), language.compact(r.degrade), language.compact(r.reject), split(r),
    ], [3, 4, 5])));
  }

  #showRooms(rooms) {
    const language = this.#language;
    fillTable($("rooms"), $("rooms-none"), rooms.slice(0, MOST_ROOMS).map((r) => row([
      stacked(r.title, `/${r.id}`), language.compact(r.online), language.rate(r.danmaku), language.compact(r.likes),
    ], [1, 2, 3])));
  }

  #showNode(m) {
    const language = this.#language;
    const started = m.sum("process_start_time_seconds");
    fillFacts($("node"), [
      [language.text("admin.nodeId"), this.#ready?.node ?? "–"],
      [language.text("admin.version"), this.#ready?.version ?? "–"],
      [language.text("admin.uptime"), started > 0 ? language.duration(Date.now() - started * 1000) : "–"],
      [language.text("admin.memory"), `${language.number(Math.round(m.sum("process_resident_memory_bytes") / 2 ** 20))} MiB`],
      [language.text("admin.goroutines"), language.number(m.sum("go_goroutines"))],
      [language.text("admin.rulesVersion"), language.number(m.sum("liveroom_rules_version"))],
    ]);
    const closes = m.by("liveroom_closes_total", "code").filter((c) => c.value > 0).sort((a, b) => b.value - a.value);
    fillFacts($("closes"), closes.map((c) => [`${c.labels.code} ${CLOSE_CODES[c.labels.code] ?? ""}`, language.number(c.value)]));
    $("closes-none").hidden = closes.length > 0;
  }
}

/** A bar of the three outcomes. */
function split({ allow, degrade, reject }) {
  const bar = make("div", "split");
  for (const part of [allow, degrade, reject]) {
    const piece = make("i");
    piece.style.flexGrow = String(part);
    bar.append(piece);
  }
  return bar;
}

new Admin(openPage());
