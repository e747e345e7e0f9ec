// A box to try texts in: how they fold, what they hit, and what would be shown.

import { $, make } from "../dom.js";

const WAIT_MS = 250;

export class TryBox {
  #calls;
  #page;
  #listOf;
  #timer = 0;
  #asking = null;

  /** `listOf()` is the list to try instead of the one in force; null: that one. */
  constructor(calls, page, listOf) {
    this.#calls = calls;
    this.#page = page;
    this.#listOf = listOf;
    $("words-try").addEventListener("input", () => this.ask(), { signal: page.signal });
    page.onLanguage(() => this.ask());
    page.signal.addEventListener("abort", () => this.#stop());
  }

  #stop() {
    clearTimeout(this.#timer);
    this.#asking?.abort();
  }

  ask() {
    this.#stop();
    const text = $("words-try").value;
    if (text.trim() === "") $("words-tried").replaceChildren();
    else this.#timer = setTimeout(() => this.#send(text), WAIT_MS);
  }

  async #send(text) {
    this.#asking = new AbortController();
    const { signal } = this.#asking;
    const { status, body } = await this.#calls.test(text, this.#listOf(), signal);
    if (signal.aborted || this.#page.signal.aborted) return;
    const { language } = this.#page;
    const t = (key, values) => language.text(`words.${key}`, values);
    if (status !== 200) {
      const said = make("dd", "fault", body?.msg ?? language.text("limits.lost"));
      $("words-tried").replaceChildren(said);
      return;
    }
    const { folded, sound, hits, action, shown } = body;
    const rows = [[t("becomes"), make("b", "", action ? t(`actionOf.${action}`) : t("shownAsIs"))], [t("folded"), make("bdi", "mono", folded)]];
    if (sound) rows.push([t("sound"), make("bdi", "mono", sound)]);
    for (const hit of hits) {
      const found = make("span");
      found.append(make("bdi", "", hit.found), hit.sound ? ` ${t("soundsLike")} ` : " → ", make("bdi", "", hit.word), ` (${t(`actionOf.${hit.action}`)})`);
      rows.push([t("hit"), found]);
    }
    if (action === "replace" || shown !== text) rows.push([t("shown"), make("bdi", "", shown)]);
    $("words-tried").dataset.action = action ?? "";
    $("words-tried").replaceChildren(...rows.flatMap(([term, node]) => {
      const dd = make("dd");
      dd.append(node);
      return [make("dt", "", term), dd];
    }));
  }
}
