// What every page has: a language, a theme, and a signal that ends what it started.

import words from "../i18n/page.js";
import { Emitter } from "../../client/emitter.js";
import { Language, chooseLanguage } from "../models/language.js";
import { $, aria, icon, named, saved } from "./dom.js";
import { offerLanguages } from "./languages.js";

/** Opens the page: `{language, signal, onLanguage}`. `onLanguage` calls back at each change. `more` holds words of this page alone, by language. */
export function openPage(more = {}) {
  const ends = new AbortController();
  const changes = new Emitter();
  const codes = Object.keys(words);
  const tables = Object.fromEntries(codes.map((code) => [code, { ...words[code], ...more[code] }]));
  const language = new Language(tables, chooseLanguage(saved.get("language"), navigator.languages, codes));
  // A page in the back-forward cache would come back with dead timers.
  addEventListener("pagehide", () => ends.abort(), { once: true });
  addEventListener("pageshow", (event) => event.persisted && location.reload());
  setUpTheme(ends.signal);
  const showLanguage = offerLanguages(language, (code) => {
    language.code = code;
    saved.set("language", code);
    speak();
    changes.emit("change", language);
  }, ends.signal);
  const speak = () => {
    translate(language);
    showLanguage();
  };
  speak();
  const onLanguage = (listener) => changes.on("change", listener, { signal: ends.signal });
  return { language, signal: ends.signal, onLanguage };
}

/**
 * Fills in the words of the document: data-t (text), -aria, -title, -label (name
 * and tooltip), -placeholder.
 */
function translate(language) {
  document.documentElement.lang = language.text("app.tag");
  document.documentElement.dir = language.text("app.dir");
  for (const e of document.querySelectorAll("[data-t]")) e.textContent = language.text(e.dataset.t);
  for (const e of document.querySelectorAll("[data-t-aria]")) aria(e, "label", language.text(e.dataset.tAria));
  for (const e of document.querySelectorAll("[data-t-placeholder]")) e.placeholder = language.text(e.dataset.tPlaceholder);
  for (const e of document.querySelectorAll("[data-t-title]")) e.title = language.text(e.dataset.tTitle);
  for (const e of document.querySelectorAll("[data-t-label]")) named(e, language.text(e.dataset.tLabel));
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
