// The send box: counter, cool-down ring, and the choosers of colour and place.

import { MODES } from "../../client/codes.js";
import { Cooldown } from "../models/cooldown.js";
import { explain } from "../models/refusal.js";
import { MAX_GRAPHEMES, cleanText } from "../models/text.js";
import { portray } from "../models/person.js";
import { $, aria, frames, icon, make, named, radios, saved } from "./dom.js";

const COLORS = ["#ffffff", "#ff7a6b", "#ffc457", "#7ee0a1", "#7fb2ff", "#f79ad3", "#c3a2ff"];
/** The counter speaks up when so few characters are left. */
const NEAR_END = 20;

export class Composer {
  #language;
  #onSend;
  #cooldown = new Cooldown();
  #wake;
  #input = $("message");
  #verdict = cleanText("");
  #color = COLORS.includes(saved.get("color")) ? saved.get("color") : COLORS[0];
  #mode = MODES.includes(saved.get("mode")) ? saved.get("mode") : MODES[0];
  #insists = false;
  #barred = null;
  #slowMs = 0;
  #reply = null;

  /** `onSend(text, {color, mode, replyTo})` gets a text that the server will find well-formed; `replyTo` is an entry of the list, or null. */
  constructor({ language, signal, onLanguage, onSend }) {
    this.#language = language;
    this.#onSend = onSend;
    this.#wake = frames(() => this.#cool(), signal);
    $("composer").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#send();
    }, { signal });
    this.#input.addEventListener("input", () => this.#typed(), { signal });
    this.#input.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      if (this.#reply) this.replyTo(null);
      else this.#input.blur();
    }, { signal });
    this.#setUpStyles(signal);
    onLanguage(() => {
      this.#nameStyles();
      this.#showReply();
      this.#show();
    });
    this.#show();
  }

  focus() {
    this.#input.focus();
  }

  /** What is said next answers this entry; null: nothing. */
  replyTo(entry) {
    this.#reply = entry;
    this.#showReply();
    if (entry) this.focus();
  }

  #showReply() {
    const bar = $("replying");
    bar.hidden = this.#reply === null;
    if (!this.#reply) return;
    const drop = make("button", "tool");
    drop.type = "button";
    drop.append(icon("close"));
    named(drop, this.#language.text("send.noReply"));
    drop.addEventListener("click", () => {
      this.replyTo(null);
      this.focus();
    });
    bar.replaceChildren(icon("reply"), make("bdi", "", this.#language.text("send.replyTo", { name: portray(this.#reply.user).name, text: this.#reply.text })), drop);
  }

  /** Takes the box away for as long as nothing can be said, with the word that says why; null gives it back. */
  set barred(word) {
    if (word === this.#barred) return;
    this.#barred = word;
    this.#input.disabled = word !== null;
    this.#input.dataset.tPlaceholder = word ?? "send.placeholder";
    this.#input.placeholder = this.#language.text(this.#input.dataset.tPlaceholder);
    this.#show();
  }

  /** The room's slow mode, told while nothing else is to be told; 0: none. */
  set slowMs(ms) {
    this.#slowMs = ms;
    this.#show();
  }

  /** Holds the button back for the wait that an answer names. */
  hold(answer) {
    this.#cooldown.start(answer.retry_after_ms ?? 0, performance.now(), answer);
    this.#wake();
  }

  /** The wait is over before its time: a mute was lifted. */
  release() {
    this.#cooldown.end();
    this.#wake();
  }

  #send() {
    const { text, fault } = this.#verdict;
    if (this.#barred) return;
    if (this.#cooldown.at(performance.now()).active || fault !== null) {
      this.#insists = true;
      this.#shake();
      this.#show();
      return;
    }
    this.#input.value = "";
    this.#onSend(text, { color: this.#color, mode: this.#mode, replyTo: this.#reply });
    this.replyTo(null);
    this.#typed();
  }

  #typed() {
    this.#insists = false;
    this.#verdict = cleanText(this.#input.value);
    this.#show();
  }

  #shake() {
    $("send").animate([{ transform: "none" }, { transform: "translateX(-4px)" }, { transform: "translateX(4px)" }, { transform: "none" }], { duration: 220, easing: "ease-in-out" });
  }

  /** A frame of the ring; goes on while it runs. */
  #cool() {
    const { active, leftMs, fraction } = this.#cooldown.at(performance.now());
    $("ring").style.strokeDashoffset = String(100 - fraction * 100);
    const seconds = active ? String(Math.ceil(leftMs / 1000)) : "";
    if ($("seconds").textContent !== seconds || !active) {
      $("seconds").textContent = seconds;
      this.#show();
    }
    return active;
  }

  #show() {
    const { active, leftMs, cause } = this.#cooldown.at(performance.now());
    const { count, fault } = this.#verdict;
    const wrong = fault !== null && fault !== "empty";
    const send = $("send");
    send.toggleAttribute("data-cooling", active);
    send.disabled = this.#barred !== null;
    aria(send, "disabled", String(active || fault !== null));
    aria(send, "label", active ? this.#language.text("send.wait", { s: Math.ceil(leftMs / 1000) }) : this.#language.text("send.send"));
    $("count").textContent = count > MAX_GRAPHEMES - NEAR_END || wrong ? String(MAX_GRAPHEMES - count) : count > 0 ? `${count}/${MAX_GRAPHEMES}` : "";
    this.#input.parentElement.toggleAttribute("data-fault", wrong);
    aria(this.#input, "invalid", String(wrong));
    this.#hint(active ? cause : null, leftMs, wrong || (this.#insists && fault) ? fault : null);
  }

  #hint(cause, leftMs, fault) {
    const hint = $("hint");
    const words = cause ? explain(cause, this.#language, { op: "danmaku", leftMs })
      : fault ? this.#language.text(`send.fault.${fault}`, { max: MAX_GRAPHEMES })
      : this.#slowMs > 0 && !this.#barred ? this.#language.text("room.slowOn", { t: this.#language.duration(this.#slowMs) }) : "";
    const rule = cause?.rule ? this.#language.text("why.rule", { rule: cause.rule }) : "";
    if (hint.dataset.shown === words + rule) return;
    hint.dataset.shown = words + rule;
    hint.dataset.tone = cause ? "warn" : fault ? "bad" : "";
    hint.replaceChildren(words, ...(rule ? [make("span", "mono", rule)] : []));
  }

  #setUpStyles(signal) {
    radios($("modes"), "mode", MODES, this.#mode, () => make("span", "choice"), (mode) => this.#choose({ mode }), signal);
    radios($("colors"), "color", COLORS, this.#color, (color) => {
      const swatch = make("span", "swatch");
      swatch.style.setProperty("--swatch", color);
      return swatch;
    }, (color) => this.#choose({ color }), signal);
    const open = (wanted) => {
      $("styles").hidden = !wanted;
      aria($("style"), "expanded", String(wanted));
      if (wanted) $("styles").querySelector("input:checked").focus();
    };
    $("style").addEventListener("click", () => open($("styles").hidden), { signal });
    $("styles").addEventListener("keydown", (event) => {
      if (event.key !== "Escape" && event.key !== "Enter") return;
      event.preventDefault();
      open(false);
      $("style").focus();
    }, { signal });
    document.addEventListener("pointerdown", (event) => {
      if (!$("styles").contains(event.target) && !$("style").contains(event.target)) open(false);
    }, { signal });
    this.#nameStyles();
    this.#choose({});
  }

  #choose({ color = this.#color, mode = this.#mode }) {
    this.#color = color;
    this.#mode = mode;
    saved.set("color", color);
    saved.set("mode", mode);
    $("style").style.setProperty("--chosen", color);
  }

  #nameStyles() {
    for (const input of $("modes").querySelectorAll("input")) input.nextElementSibling.textContent = this.#language.text(`send.mode.${input.value}`);
    for (const input of $("colors").querySelectorAll("input")) {
      const color = this.#language.text(`color.${input.value.slice(1)}`);
      aria(input, "label", color);
      input.nextElementSibling.title = color;
    }
  }
}
