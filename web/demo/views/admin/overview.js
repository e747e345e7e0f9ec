// The node's numbers, what its rules decide, its rooms, and why sessions ended.

import { CLOSE_CODES } from "../../../client/codes.js";
import { Decisions } from "../../models/limits/decisions.js";
import { Metrics } from "../../models/metrics.js";
import { Rate } from "../../models/series.js";
import { $ } from "../dom.js";
import { Figures } from "../figures.js";
import { poll } from "../poll.js";
import { fillFacts } from "../tables.js";
import { Charts } from "./charts.js";
import { Rooms } from "./rooms.js";

const POLL_MS = 2000;
const FIGURES = [
  ["admin.sessions", "good"], ["admin.rooms", "info"], ["admin.admitted", "info"],
  ["admin.deliveries", "good"], ["admin.refused", "bad"], ["admin.dropped", "warn"],
];

export class Overview {
  #language;
  #figures;
  #charts;
  #rates = new Map();
  #ready = null;
  #metrics = null;
  #decisions = new Decisions();
  #shown = true;

  /** `on`: `{changed(), traffic(decisions), why(question)}`. */
  constructor(token, page, on) {
    this.#language = page.language;
    this.#figures = new Figures($("tiles"), FIGURES, page);
    this.#charts = new Charts(this.#decisions, page);
    new Rooms(token, page, on.why);
    $("chart-all").addEventListener("click", () => this.#charts.all(), { signal: page.signal });
    const ask = (path, as, onAnswer) => poll(path, { ms: POLL_MS, signal: page.signal, as, onAnswer });
    ask("/readyz", "json", (answer) => this.#readiness(answer));
    ask("/metrics", "text", ({ status, body }) => {
      if (status !== 200) return;
      this.#metrics = new Metrics(body);
      const changed = this.#decisions.take(this.#metrics, performance.now());
      this.#count();
      this.#show();
      on.traffic(this.#decisions);
      if (changed) on.changed();
    });
    page.onLanguage(() => this.#show());
  }

  set shown(shown) {
    this.#shown = shown;
    this.#show();
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
    const rate = (word, value) => value !== null && this.#figures.set(word, value, language.rate(value));
    plain("admin.sessions", m.sum("liveroom_sessions"));
    plain("admin.rooms", m.sum("liveroom_rooms"));
    rate("admin.admitted", this.#rate("admitted", m.sum("liveroom_messages_total")));
    rate("admin.deliveries", this.#rate("deliveries", m.sum("liveroom_deliveries_total")));
    rate("admin.refused", this.#decisions.points("all").length > 0 ? this.#decisions.last("all").reject : null);
    rate("admin.dropped", this.#rate("dropped", m.sum("liveroom_dropped_total")));
  }

  #rate(key, total) {
    if (!this.#rates.has(key)) this.#rates.set(key, new Rate());
    return this.#rates.get(key).take(total, performance.now());
  }

  #show() {
    if (this.#ready) this.#showState();
    if (!this.#shown || !this.#metrics) return;
    this.#charts.show();
    this.#showNode(this.#metrics);
  }

  #showNode(m) {
    const language = this.#language;
    const started = m.sum("process_start_time_seconds");
    fillFacts($("node"), [
      [language.text("admin.nodeId"), this.#ready?.node ?? "–"],
      [language.text("admin.nodes"), language.number(m.sum("liveroom_bus_nodes"))],
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
