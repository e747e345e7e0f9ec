// The controls of a rule. Each is `{element, input, path, show(rule)}`; a change goes to `onEdit(path, value)`.

import { readList, readNumber } from "../../models/limits/input.js";
import { valueAt } from "../../models/limits/rule.js";
import { aria, make } from "../dom.js";

let ids = 0;

/** A label above a control, with a place for its fault below. */
export function field(label, input, { hint = "", wide = false } = {}) {
  const element = make("div", wide ? "knob wide" : "knob");
  const name = make("label", "", label);
  input.id = `knob-${ids++}`;
  name.htmlFor = input.id;
  element.append(name, input);
  if (hint) element.append(describe(input, make("small", "hint", hint)));
  return element;
}

function describe(input, text) {
  text.id = `${input.id}-hint`;
  input.setAttribute("aria-describedby", text.id);
  return text;
}

export function textInput(path, { kind = "text", onEdit, placeholder = "", className = "", label = "" }) {
  const input = make("input", `slot ${className}`);
  input.type = "text";
  input.spellcheck = false;
  input.autocomplete = "off";
  input.inputMode = kind === "number" ? "numeric" : "text";
  input.placeholder = placeholder;
  input.dataset.path = path;
  if (label) aria(input, "label", label);
  const read = { number: readNumber, list: readList, text: (t) => t.trim() || undefined }[kind];
  input.addEventListener("input", () => onEdit(path, read(input.value)));
  return {
    path, input, element: input,
    show: (rule) => {
      if (document.activeElement === input) return;
      const value = valueAt(rule, path);
      input.value = Array.isArray(value) ? value.join(", ") : String(value ?? "");
    },
  };
}

export function select(path, options, { onEdit, label = "" }) {
  const input = make("select", "slot");
  input.dataset.path = path;
  if (label) aria(input, "label", label);
  for (const [value, text] of options) {
    const option = make("option", "", text);
    option.value = value;
    input.append(option);
  }
  input.addEventListener("change", () => onEdit(path, input.value));
  return { path, input, element: input, show: (rule) => { input.value = valueAt(rule, path) ?? options[0][0]; } };
}

/** A switch: role, name and state for those who hear the page. */
export function toggle(path, label, { onEdit, hidden = false }) {
  const element = make("label", "switch");
  const input = make("input");
  input.type = "checkbox";
  input.setAttribute("role", "switch");
  input.dataset.path = path;
  const text = make("span", hidden ? "only-read" : "", label);
  element.append(input, make("i"), text);
  input.addEventListener("change", () => onEdit(path, input.checked || undefined));
  return { path, input, element, show: (rule) => { input.checked = valueAt(rule, path) === true; } };
}

/** Chips of which any number is on; the value is a list. */
export function chips(path, options, { onEdit, label, extra = null }) {
  const element = make("div", "chips");
  element.setAttribute("role", "group");
  aria(element, "label", label);
  element.dataset.path = path;
  element.tabIndex = -1;
  let value = [];
  const boxes = options.map(([name, text]) => {
    const chip = make("label", "chip");
    const input = make("input");
    input.type = "checkbox";
    input.value = name;
    input.addEventListener("change", () => {
      onEdit(path, input.checked ? [...value, name] : value.filter((v) => v !== name));
    });
    chip.append(input, make("span", "", text));
    element.append(chip);
    return input;
  });
  if (extra) element.append(extra);
  return {
    path, input: element, element,
    show: (rule) => {
      value = valueAt(rule, path) ?? [];
      for (const box of boxes) box.checked = value.includes(box.value);
    },
  };
}

/** Puts faults at their controls: marks them and says why below. `faults` are `[{path, text}]` of these controls. */
export function showFaults(controls, faults) {
  for (const { path, input } of controls) {
    const texts = faults.filter((f) => f.path === path).map((f) => f.text);
    const bad = texts.length > 0;
    if (bad) input.setAttribute("aria-invalid", "true");
    else input.removeAttribute("aria-invalid");
    const knob = input.closest(".knob");
    if (!knob) {
      input.title = texts.join("\n");
      continue;
    }
    let said = knob.querySelector(":scope > .fault");
    if (!bad) {
      said?.remove();
      input.removeAttribute("aria-errormessage");
      continue;
    }
    if (!said) {
      said = make("p", "fault");
      said.id = `${input.id || `knob-${ids++}`}-fault`;
      knob.append(said);
      input.setAttribute("aria-errormessage", said.id);
    }
    said.textContent = texts.join(" · ");
  }
}

export function button(text, className, onClick) {
  const element = make("button", className, text);
  element.type = "button";
  element.addEventListener("click", onClick);
  return element;
}
