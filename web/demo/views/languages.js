// The choice of a language: a button between two, a list of more.

import { $, aria, make, named } from "./dom.js";

/** Puts the choice in the place of #language. `onPick` gets a code; what is returned shows what is spoken now. */
export function offerLanguages(language, onPick, signal) {
  return language.codes.length > 2 ? offerList(language, onPick, signal) : offerButton(language, onPick, signal);
}

function offerButton(language, onPick, signal) {
  const button = $("language");
  const other = () => language.codes.find((code) => code !== language.code);
  button.addEventListener("click", () => onPick(other()), { signal });
  return () => {
    button.textContent = language.textIn(other(), "app.language");
    named(button, language.textIn(other(), "app.languageLabel"));
    button.lang = language.textIn(other(), "app.tag");
  };
}

function offerList(language, onPick, signal) {
  const list = make("select", "tool");
  list.id = "language";
  for (const code of language.codes) {
    const option = make("option", "", language.textIn(code, "app.languageName"));
    option.value = code;
    option.lang = language.textIn(code, "app.tag");
    list.append(option);
  }
  list.addEventListener("change", () => onPick(list.value), { signal });
  $("language").replaceWith(list);
  return () => {
    list.value = language.code;
    aria(list, "label", language.text("app.languages"));
  };
}
