// Asks before a step that many people would feel. What must be typed is what must be known.

import { confirms } from "../../models/limits/confirmation.js";
import { $, make } from "../dom.js";

/**
 * Opens the dialog and resolves to `{note}` when it is confirmed, else to null. `must` is what to type, or null for a
 * plain question; `content` are nodes to read first.
 */
export function confirm({ title, content = [], ask, must = null, action, danger = false, note = null }, signal) {
  const dialog = $("confirm");
  $("confirm-title").textContent = title;
  $("confirm-body").replaceChildren(...content);
  const input = $("confirm-input");
  $("confirm-ask").hidden = must === null;
  $("confirm-label").textContent = ask ?? "";
  input.value = "";
  const noteKnob = $("confirm-note-knob");
  noteKnob.hidden = note === null;
  $("confirm-note").value = note ?? "";
  const go = $("confirm-go");
  go.textContent = action;
  go.classList.toggle("danger", danger);
  const check = () => { go.disabled = must !== null && !confirms(input.value, must); };
  check();
  return new Promise((resolve) => {
    const ends = new AbortController();
    const options = { signal: ends.signal };
    const end = (answer) => {
      ends.abort();
      hide(dialog);
      resolve(answer);
    };
    signal.addEventListener("abort", () => end(null), options);
    input.addEventListener("input", check, options);
    dialog.addEventListener("close", () => end(null), options);
    $("confirm-cancel").addEventListener("click", () => end(null), options);
    $("confirm-form").addEventListener("submit", (event) => {
      event.preventDefault();
      if (!go.disabled) end({ note: $("confirm-note").value.trim() });
    }, options);
    show(dialog);
    (must === null ? go : input).focus();
  });
}

// Firefox before 98 and Safari before 15.4 know no dialog: it is a card over the page then.
function show(dialog) {
  if (dialog.showModal) dialog.showModal();
  else dialog.setAttribute("open", "");
}

function hide(dialog) {
  if (!dialog.close) dialog.removeAttribute("open");
  else if (dialog.open) dialog.close();
}

export function paragraphs(texts, className = "") {
  return texts.map((text) => make("p", className, text));
}
