// What all nodes do and their rules decide, their rooms and their loudest users; this node's numbers, and why its sessions
// ended.

import { CLOSE_CODES } from "../../../client/codes.js";
import { Decisions } from "../../models/limits/decisions.js";
import { Metrics } from "../../models/metrics.js";
import { last } from "../../models/older.js";
import { $ } from "../dom.js";
import { Figures } from "../figures.js";
import { poll } from "../poll.js";
import { fillFacts } from "../tables.js";
import { Charts } from "./charts.js";
import { Rooms } from "./rooms.js";
import { TopUsers } from "./top.js";

const POLL_MS = 2000;
/** A step of the server's memory. */
const TRAFFIC_MS = 5000;
const FIGURES = [
  ["admin.nodes", "info"], ["admin.sessions", "good"], ["admin.admitted", "info"],
  ["admin.deliveries", "good"], ["admin.refused", "bad"], ["admin.dropped", "warn"],
];

export class Overview {
  #language;
  #figures;
  #charts;
  #top;
  #ready = null;
  #metrics = null;
  #decisions = new Decisions();
  #shown = true;

  /** `on`: `{answered(status), changed(), traffic(decisions), why(question)}`. */
  constructor(token, page, on) {
    this.#language = page.language;
    this.#figures = new Figures($("tiles"), FIGURES, page);
    this.#charts = new Charts(this.#decisions, page);
    this.#top = new TopUsers(page, on.why);
    new Rooms(token, page, on.why);
    $("chart-all").addEventListener("click", () => this.#charts.all(), { signal: page.signal });
    const ask = (path, as, onAnswer) => poll(path, { ms: POLL_MS, signal: page.signal, as, onAnswer });
    ask("/readyz", "json", (answer) => this.#readiness(answer));
    ask("/metrics", "text", ({ status, body }) => {
      if (status !== 200) return;
      this.#metrics = new Metrics(body);
      this.#show();
    });
    poll("/api/v1/limits/traffic", { ms: TRAFFIC_MS, signal: page.signal, token: () => token, onAnswer: ({ status, body }) => {
      on.answered(status);
      if (status !== 200) return;
      const changed = this.#decisions.take(body);
      this.#count();
      this.#show();
      on.traffic(this.#decisions);
      if (changed) on.changed();
    } });
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
    const d = this.#decisions;
    const language = this.#language;
    const fill = (word, values, text) => this.#figures.fill(word, values, text(last(values) ?? 0));
    const compact = (n) => language.compact(n);
    const rate = (n) => language.rate(n);
    this.#figures.fill("admin.nodes", [], language.number(d.nodes));
    fill("admin.sessions", d.figure("sessions"), compact);
    for (const name of ["admitted", "deliveries", "dropped"]) fill(`admin.${name}`, d.figure(name), rate);
    fill("admin.refused", d.points("all").map((p) => p.reject), rate);
  }

  #show() {
    if (this.#ready) this.#showState();
    if (!this.#shown) return;
    this.#charts.show();
    this.#top.show(this.#decisions.top);
    if (this.#metrics) this.#showNode(this.#metrics);
  }

  #showNode(m) {
    const language = this.#language;
    const { uptime_ms: uptime } = this.#ready ?? {};
    fillFacts($("node"), [
      [language.text("admin.nodeId"), this.#ready?.node ?? "–"],
      [language.text("admin.rooms"), language.number(m.sum("liveroom_rooms"))],
      [language.text("admin.version"), this.#ready?.version ?? "–"],
      [language.text("admin.uptime"), uptime > 0 ? language.duration(uptime) : "–"],
      [language.text("admin.memory"), `${language.number(Math.round(m.sum("process_resident_memory_bytes") / 2 ** 20))} MiB`],
      [language.text("admin.goroutines"), language.number(m.sum("go_goroutines"))],
      [language.text("admin.rulesVersion"), language.number(m.sum("liveroom_rules_version"))],
    ]);
    const closes = m.by("liveroom_closes_total", "code").filter((c) => c.value > 0).sort((a, b) => b.value - a.value);
    fillFacts($("closes"), closes.map((c) => [`${c.labels.code} ${CLOSE_CODES[c.labels.code] ?? ""}`, language.number(c.value)]));
    $("closes-none").hidden = closes.length > 0;
  }
}
