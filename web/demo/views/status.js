// The state of the connection, in the top bar and, when it matters, over the stage.

import { $, every } from "./dom.js";

/** A wait shorter than this is not worth a curtain. */
const CURTAIN_AFTER_MS = 900;
const PHASES_THAT_MATTER = ["waiting", "offline", "refused"];

export class Status {
  #connection;
  #language;
  #since = 0;
  #until = 0;
  #wasLive = false;

  constructor(connection, { language, signal, onLanguage }) {
    this.#connection = connection;
    this.#language = language;
    connection.on("state", (state) => this.#changed(state), { signal });
    onLanguage(() => this.#show());
    $("retry")?.addEventListener("click", () => connection.start(), { signal });
    addEventListener("online", () => connection.setOnline(true), { signal });
    addEventListener("offline", () => connection.setOnline(false), { signal });
    every(250, () => this.#show(), signal);
    this.#show();
  }

  #changed(state) {
    this.#until = performance.now() + state.waitMs;
    if (state.phase === "live") this.#wasLive = true;
    if (!PHASES_THAT_MATTER.includes(state.phase)) this.#since = 0;
    else if (this.#since === 0) this.#since = performance.now();
    this.#show();
  }

  #show() {
    const { phase, close } = this.#connection.state;
    const words = this.#words(phase, close);
    const chip = $("state");
    chip.dataset.phase = phase;
    if (chip.textContent !== words) chip.textContent = words;
    this.#curtain(phase, close, words);
  }

  #words(phase, close) {
    const s = Math.max(1, Math.ceil((this.#until - performance.now()) / 1000));
    if (phase === "offline") return this.#language.text("state.offline", { s });
    if (phase === "refused" && whyOf(close) === "banned") return this.#language.text("state.banned");
    if (phase !== "waiting") return this.#language.text(`state.${phase}`);
    if (close?.name === "drain") return this.#language.text("state.moved", { s });
    if (close?.name === "overloaded") return this.#language.text("state.busy", { s });
    return this.#language.text("state.waiting", { s });
  }

  #curtain(phase, close, words) {
    const curtain = $("curtain");
    if (!curtain) return;
    const up = this.#since !== 0 && (phase !== "waiting" || performance.now() - this.#since > CURTAIN_AFTER_MS);
    curtain.hidden = !up && !(phase === "connecting" && !curtain.hidden && this.#wasLive);
    if (!up) return;
    const why = phase === "offline" ? "offline" : whyOf(close);
    const key = `state.why.${this.#language.has(`state.why.${why}`) ? why : "lost"}`;
    const text = `${words}\n${this.#language.text(key)}`;
    if ($("curtain-text").textContent !== text) $("curtain-text").textContent = text;
    $("retry").hidden = phase === "refused" && close?.name !== "token";
  }
}

/** What a 4403 says further. */
const FORBIDDEN = { "banned": "banned", "rejected": "rejected", "network_banned": "network_banned", "token is for other rooms": "elsewhere" };

export function whyOf(close) {
  const name = close?.name ?? "lost";
  return name === "forbidden" ? FORBIDDEN[close.detail.detail] ?? name : name;
}
