// Why somebody is limited: the rules in the order they are asked, with their levels.

import { readStandings, subjectOf } from "../../models/limits/standing.js";
import { ACTIONS, ROLES } from "../../models/limits/vocabulary.js";
import { actionName, roleName } from "../../models/limits/sentence.js";
import { $, make } from "../dom.js";
import { fillTable, row } from "../tables.js";

const AGAIN_MS = 1000;

export class ExplainView {
  #calls;
  #page;
  #question = null;
  #standings = null;
  #timer = 0;
  #shown = false;

  constructor(calls, page) {
    this.#calls = calls;
    this.#page = page;
    const { signal } = page;
    $("why").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#ask();
    }, { signal });
    $("why-reset").addEventListener("click", () => this.#reset(), { signal });
    signal.addEventListener("abort", () => clearTimeout(this.#timer));
    page.onLanguage(() => this.#relabel());
    this.#relabel();
  }

  /** Levels move, so they are asked for again while the view is seen. */
  set shown(shown) {
    this.#shown = shown;
    if (shown && this.#question) this.#again();
  }

  /** Asks about somebody whom another view names. */
  about(question) {
    for (const [name, value] of Object.entries(question)) $(`why-${name}`).value = value;
    this.#ask();
  }

  #t(key, values) {
    return this.#page.language.text(`explain.${key}`, values);
  }

  #ask() {
    const q = Object.fromEntries(["action", "room", "user", "role", "addr"].map((k) => [k, $(`why-${k}`).value.trim()]).filter(([, v]) => v !== ""));
    this.#question = q;
    this.#standings = null;
    this.#again();
  }

  async #again() {
    clearTimeout(this.#timer);
    const q = this.#question;
    const { status, body } = await this.#calls.explain(q);
    if (this.#page.signal.aborted || q !== this.#question) return;
    if (status === 200) {
      this.#standings = readStandings(body);
      this.#say("", "");
    } else {
      this.#say(body?.msg ?? this.#page.language.text("limits.lost"), "bad");
      if (status === 400) this.#question = null;
    }
    this.#show();
    if (this.#shown && this.#question && !document.hidden) this.#timer = setTimeout(() => this.#again(), AGAIN_MS);
  }

  async #reset() {
    const subject = subjectOf(this.#question ?? {});
    if (!subject) return;
    const { status, body } = await this.#calls.reset(subject);
    if (status !== 204) return this.#say(body?.msg ?? this.#page.language.text("limits.lost"), "bad");
    await this.#again();
    this.#say(this.#t("done", { who: nameOf(subject) }), "good");
  }

  #say(text, tone) {
    const said = $("why-said");
    said.textContent = text;
    said.dataset.tone = tone;
    said.hidden = text === "";
  }

  #show() {
    const { language } = this.#page;
    const s = this.#standings;
    const subject = subjectOf(this.#question ?? {});
    $("why-reset").hidden = !s || !subject;
    if (subject) $("why-reset").textContent = this.#t("reset", { who: nameOf(subject) });
    $("why-verdict").hidden = !s;
    if (s) {
      $("why-verdict").dataset.verdict = s.verdict;
      $("why-verdict").textContent = this.#t(`verdict.${s.verdict}`, { t: waitText(s.waitMs, language) });
    }
    fillTable($("standings"), $("standings-none"), (s?.rules ?? []).map((r, i) => this.#row(r, i)));
  }

  #row(r, i) {
    const { language } = this.#page;
    const why = make("span", "tag", this.#t(`whyOf.${r.why}`));
    if (r.why === "applies") why.classList.add(r.waitMs === 0 ? "good" : "bad");
    const level = make("div", "level");
    const wait = !r.asked ? "–" : r.waitMs < 0 ? this.#t("never") : r.waitMs === 0 ? this.#t("now") : waitText(r.waitMs, language);
    if (r.asked) {
      const track = make("div", "meter");
      const fill = make("i");
      fill.style.transform = `scaleX(${r.share})`;
      if (r.waitMs !== 0) track.dataset.low = "";
      track.append(fill);
      level.append(track, make("span", "number", `${language.compact(r.level)} / ${language.compact(r.burst)}`));
    } else level.append(make("span", "soft", "–"));
    const tr = row([make("span", "number soft", String(i + 1)), make("span", "mono", r.rule), language.text(`limits.scopeOf.${r.scope}`), why, level, wait], [5]);
    if (!r.asked) tr.className = "unasked";
    return tr;
  }

  #relabel() {
    const { language } = this.#page;
    options($("why-action"), ACTIONS.map((a) => [a, actionName(a, language)]));
    options($("why-role"), [["", this.#t("anyRole")], ...ROLES.map((r) => [r, roleName(r, language)])]);
    this.#show();
  }
}

function options(select, list) {
  const chosen = select.value || list[0][0];
  select.replaceChildren(...list.map(([value, text]) => {
    const option = make("option", "", text);
    option.value = value;
    option.selected = value === chosen;
    return option;
  }));
}

function nameOf({ user, room, addr, key }) {
  return [user, room && `/${room}`, addr, key].filter(Boolean).join(" ");
}

function waitText(ms, language) {
  return ms < 10_000 ? language.text("explain.seconds", { n: (Math.ceil(ms / 100) / 10).toFixed(1) }) : language.duration(ms);
}
