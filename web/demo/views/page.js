// What every page has: a language, a theme, and a signal that ends what it started.

import en from "../i18n/en.js";
import zh from "../i18n/zh.js";
import { Emitter } from "../../client/emitter.js";
import { Language, chooseLanguage } from "../models/language.js";
import { $, aria, icon, named, saved } from "./dom.js";

/** Opens the page: `{language, signal, onLanguage}`. `onLanguage` calls back at each change. `more` holds words of this page alone. */
export function openPage(more = { en: {}, zh: {} }) {
  const ends = new AbortController();
  const changes = new Emitter();
  const language = new Language({ en: { ...en, ...more.en }, zh: { ...zh, ...more.zh } }, chooseLanguage(saved.get("language"), navigator.languages, ["en", "zh"]));
  // A page in the back-forward cache would come back with dead timers.
  addEventListener("pagehide", () => ends.abort(), { once: true });
  addEventListener("pageshow", (event) => event.persisted && location.reload());
  setUpTheme(ends.signal);
  const speak = () => {
    translate(language);
    changes.emit("change", language);
  };
  $("language").addEventListener("click", () => {
    language.code = language.code === "zh" ? "en" : "zh";
    saved.set("language", language.code);
    speak();
  }, { signal: ends.signal });
  translate(language);
  const onLanguage = (listener) => changes.on("change", listener, { signal: ends.signal });
  return { language, signal: ends.signal, onLanguage };
}

/**
 * Fills in the words of the document: data-t (text), -aria, -title, -label (name
 * and tooltip), -placeholder.
 */
function translate(language) {
  document.documentElement.lang = language.code === "zh" ? "zh-CN" : "en";
  for (const e of document.querySelectorAll("[data-t]")) e.textContent = language.text(e.dataset.t);
  for (const e of document.querySelectorAll("[data-t-aria]")) aria(e, "label", language.text(e.dataset.tAria));
  for (const e of document.querySelectorAll("[data-t-placeholder]")) e.placeholder = language.text(e.dataset.tPlaceholder);
  for (const e of document.querySelectorAll("[data-t-title]")) e.title = language.text(e.dataset.tTitle);
  for (const e of document.querySelectorAll("[data-t-label]")) named(e, language.text(e.dataset.tLabel));
  const button = $("language");
  button.textContent = language.text("app.language");
  named(button, language.text("app.languageLabel"));
  button.lang = language.code === "zh" ? "en" : "zh-CN";
}

function setUpTheme(signal) {
  const button = $("theme");
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const dark = () => root.dataset.theme === "dark";
  const show = () => {
    button.replaceChildren(icon(dark() ? "sun" : "moon"));
    aria(button, "pressed", String(dark()));
  };
  button.addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    saved.set("theme", root.dataset.theme);
    show();
  }, { signal });
  system.addEventListener("change", () => {
    if (saved.get("theme")) return;
    root.dataset.theme = system.matches ? "dark" : "light";
    show();
  }, { signal });
  show();
}
