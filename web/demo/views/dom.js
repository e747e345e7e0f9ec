// Small steps that every view takes. Text goes in by textContent alone.

const SVG = "http://www.w3.org/2000/svg";

export const $ = (id) => document.getElementById(id);

/** An element with a class and a text. */
export function make(tag, className = "", text = "") {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text) element.textContent = text;
  return element;
}

/** Sets an attribute aria-…, or takes it away for null: Firefox before 119 does not reflect the properties. */
export function aria(element, name, value) {
  if (value === null) element.removeAttribute(`aria-${name}`);
  else element.setAttribute(`aria-${name}`, value);
}

/** Gives an element a name, for the eye as a tooltip. */
export function named(element, name) {
  element.title = name;
  aria(element, "label", name);
}

/** An icon of the sheet, for the eye only. */
export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  const use = document.createElementNS(SVG, "use");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  use.setAttribute("href", `/assets/icons.svg#${name}`);
  svg.append(use);
  return svg;
}

export function svg(tag, attributes = {}) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

/** A round face with the initial of a portrait. */
export function dressFace(element, { initial, tone }) {
  element.className = "face";
  element.dataset.tone = tone;
  element.textContent = initial;
  return element;
}

/** Radio buttons in a fieldset; `onPick` gets the value. `faceOf` makes what is seen of each. */
export function radios(fieldset, name, values, chosen, faceOf, onPick, signal) {
  for (const value of values) {
    const label = make("label");
    const input = make("input");
    input.type = "radio";
    input.name = name;
    input.value = value;
    input.checked = value === chosen;
    label.append(input, faceOf(value, input));
    fieldset.append(label);
  }
  fieldset.addEventListener("change", (event) => onPick(event.target.value), { signal });
}

/** Local storage that may be forbidden or full. */
export const saved = {
  get(key) {
    try {
      return localStorage.getItem(`liveroom.${key}`);
    } catch {
      return null;
    }
  },
  set(key, value) {
    try {
      if (value === null) localStorage.removeItem(`liveroom.${key}`);
      else localStorage.setItem(`liveroom.${key}`, value);
    } catch {
      // The choice holds for this page then.
    }
  },
};

/** Calls `step` each animation frame while there is something to do: `wake()` starts it, `step` returns whether to go on. */
export function frames(step, signal) {
  let frame = 0;
  const run = (now) => {
    frame = step(now) ? requestAnimationFrame(run) : 0;
  };
  signal.addEventListener("abort", () => cancelAnimationFrame(frame));
  return () => {
    if (frame === 0 && !signal.aborted) frame = requestAnimationFrame(run);
  };
}

/** Calls `tick` now and then each `ms`. */
export function every(ms, tick, signal) {
  if (signal.aborted) return;
  const timer = setInterval(tick, ms);
  signal.addEventListener("abort", () => clearInterval(timer));
}
