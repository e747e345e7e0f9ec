// The room's settings on the host's desk: title, slow mode, open or closed.

import { explain } from "../models/refusal.js";
import { $, make } from "./dom.js";

const SLOW_SECONDS = [0, 3, 5, 10, 30, 60, 300];
const SPEAK = ["all", "members", "followers", "staff"];

export class Settings {
  #page;
  #path;
  #token;
  #touched = false;
  #shield = "off";

  /** `path` is the room's resource, `token()` its bearer. */
  constructor(path, token, page) {
    this.#page = page;
    this.#path = path;
    this.#token = token;
    const { signal, onLanguage } = page;
    $("settings").addEventListener("input", () => this.#say("", ""), { signal });
    $("settings").addEventListener("input", () => { this.#touched = true; }, { signal });
    $("speak").addEventListener("change", () => { $("follow-row").hidden = $("speak").value !== "followers"; }, { signal });
    $("settings").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#save();
    }, { signal });
    $("raid-none").addEventListener("click", () => this.#end("release"), { signal });
    $("raid-drop").addEventListener("click", () => this.#end("drop"), { signal });
    $("shield-try").addEventListener("click", () => this.#try(), { signal });
    onLanguage(() => this.#options());
    this.#options();
  }

  /** Shows the room as it is, unless the host is changing it. */
  show(room) {
    this.#raid(room.shield);
    if (this.#touched) return;
    $("room-title").value = room.title ?? "";
    $("closed").checked = room.closed === true;
    $("shield").value = room.shield?.mode ?? "off";
    $("emoji-only").checked = room.emoji_only === true;
    $("links-off").checked = room.links_off === true;
    $("follow").value = room.follow_minutes ?? 0;
    $("speak").value = room.speak ?? SPEAK[0];
    $("follow-row").hidden = room.speak !== "followers";
    this.#options(Math.round((room.slow_mode_ms ?? 0) / 1000));
  }

  /** Says that there is a raid, with what one of it said, until it is over. */
  #raid(shield) {
    this.#shield = shield?.mode ?? "off";
    const raid = shield?.raid;
    const said = raid && raid.until > Date.now() ? this.#page.language.text("host.raid", { text: raid.sample, t: this.#page.language.duration(raid.until - Date.now()) }) : "";
    if (said !== "") $("raid").firstElementChild.textContent = said;
    $("raid").hidden = said === "";
  }

  /** Ends the raid, with what becomes of what was held. */
  async #end(held) {
    const answer = await this.#put({ shield: { mode: this.#shield, held } });
    if (answer.code === 200) this.#raid(answer.shield);
    else this.#say(answer.msg ?? explain(answer, this.#page.language), "bad");
  }

  /** Tells what a shield would have held of the last minutes. */
  async #try() {
    const { language } = this.#page;
    const answer = await this.#ask("GET", `${this.#path}/shield/preview`);
    const { raids = [] } = answer;
    $("shield-said").textContent = answer.code !== 200 ? answer.msg ?? explain(answer, language)
      : raids.length === 0 ? language.text("host.shieldTriedNone", { n: answer.looked })
        : language.text("host.shieldTried", { n: answer.looked, held: answer.held, back: answer.taken_back, text: raids[0].sample });
  }

  async #save() {
    const settings = { title: $("room-title").value.trim(), slow_mode_ms: Number($("slow").value) * 1000, closed: $("closed").checked,
      speak: $("speak").value, emoji_only: $("emoji-only").checked, links_off: $("links-off").checked, follow_minutes: Math.max(0, Math.floor(Number($("follow").value))) };
    if ($("shield").value !== this.#shield) settings.shield = { mode: $("shield").value };
    const answer = await this.#put(settings);
    if (answer.code === 0 || answer.code >= 400) {
      this.#say(answer.msg ?? explain(answer, this.#page.language), "bad");
      return;
    }
    this.#touched = false;
    this.#say(this.#page.language.text("host.saved"), "");
  }

  #put(settings) {
    return this.#ask("PUT", this.#path, JSON.stringify(settings));
  }

  async #ask(method, path, body) {
    try {
      const response = await fetch(path, {
        method,
        body,
        headers: { "Authorization": `Bearer ${this.#token()}`, "Content-Type": "application/json", "Accept-Language": this.#page.language.code },
        signal: this.#page.signal,
      });
      return { code: response.status, ...(await response.json()) };
    } catch {
      return { code: 0, reason: "lost" };
    }
  }

  #options(chosen = Number($("slow").value), who = $("speak").value || SPEAK[0]) {
    const { language } = this.#page;
    $("speak").replaceChildren(...SPEAK.map((s) => {
      const option = make("option", "", language.text(`host.speak.${s}`));
      option.value = s;
      option.selected = s === who;
      return option;
    }));
    const seconds = SLOW_SECONDS.includes(chosen) ? SLOW_SECONDS : [...SLOW_SECONDS, chosen].sort((a, b) => a - b);
    $("slow").replaceChildren(...seconds.map((s) => {
      const option = make("option", "", s === 0 ? language.text("host.slowOff") : language.text("host.slowEvery", { t: language.duration(s * 1000) }));
      option.value = s;
      option.selected = s === chosen;
      return option;
    }));
  }

  #say(text, tone) {
    $("settings-said").textContent = text;
    $("settings-said").dataset.tone = tone;
  }
}
