// A menu beside what it is about: by pointer, touch or keyboard; and a form over the page. Both give the focus back.

import { aria, icon, make } from "./dom.js";

/**
 * Opens a menu at `at` (`{x, y}`) named `label`. `items` are `{id, text, icon, tone}` or `{text, icon, choices: [{id, text}]}`;
 * `onPick(id)` is called once it is closed. Returns what closes it.
 */
export function openMenu({ at, label, items, onPick, signal }) {
  const back = document.activeElement;
  const ends = new AbortController();
  const menu = make("div", "menu");
  menu.setAttribute("role", "menu");
  aria(menu, "label", label);
  menu.append(make("p", "menu-of", label));
  const close = () => {
    if (ends.signal.aborted) return;
    ends.abort();
    menu.remove();
    if (back?.isConnected) back.focus({ preventScroll: true });
  };
  const button = (item) => {
    const b = make("button", "menu-item");
    b.type = "button";
    b.setAttribute("role", "menuitem");
    b.tabIndex = -1;
    if (item.icon) b.append(icon(item.icon));
    b.append(make("span", "", item.text));
    if (item.name) aria(b, "label", item.name);
    if (item.tone) b.dataset.tone = item.tone;
    b.addEventListener("click", () => {
      close();
      onPick(item.id);
    });
    return b;
  };
  for (const item of items) {
    if (!item.choices) {
      menu.append(button(item));
      continue;
    }
    const row = make("div", "menu-row");
    row.setAttribute("role", "group");
    aria(row, "label", item.text);
    row.append(icon(item.icon), make("span", "menu-what", item.text), ...item.choices.map((c) => button({ ...c, name: `${item.text}: ${c.text}` })));
    menu.append(row);
  }
  document.body.append(menu);
  place(menu, at);
  const all = [...menu.querySelectorAll("button")];
  menu.addEventListener("keydown", (event) => {
    const here = all.indexOf(document.activeElement);
    const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
    if (step) all[(here + step + all.length) % all.length].focus();
    else if (event.key === "Home") all[0].focus();
    else if (event.key === "End") all[all.length - 1].focus();
    else if (event.key === "Escape" || event.key === "Tab") close();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  document.addEventListener("pointerdown", (event) => menu.contains(event.target) || close(), { signal: ends.signal, capture: true });
  addEventListener("resize", () => place(menu, at), { signal: ends.signal });
  signal.addEventListener("abort", close, { signal: ends.signal });
  all[0]?.focus({ preventScroll: true });
  return close;
}

/** Beside the point, and inside the window. */
function place(menu, { x, y }) {
  const { offsetWidth: width, offsetHeight: height } = menu;
  menu.style.left = `${Math.max(8, Math.min(x, innerWidth - width - 8))}px`;
  menu.style.top = `${Math.max(8, Math.min(y, innerHeight - height - 8))}px`;
}

/**
 * Lays a sheet over the page with `content` below a title. Escape, the cross and a click beside it close it; the focus stays inside.
 * Returns `{close}`.
 */
export function openSheet({ title, content, closeLabel, signal }) {
  const back = document.activeElement;
  const ends = new AbortController();
  const veil = make("div", "veil");
  const sheet = make("section", "sheet card");
  sheet.setAttribute("role", "dialog");
  aria(sheet, "modal", "true");
  aria(sheet, "label", title);
  sheet.tabIndex = -1; // a click on its text leaves the focus inside
  const head = make("header");
  const cross = make("button", "tool");
  cross.type = "button";
  cross.append(icon("close"));
  aria(cross, "label", closeLabel);
  head.append(make("h2", "", title), cross);
  sheet.append(head, content);
  veil.append(sheet);
  const close = () => {
    if (ends.signal.aborted) return;
    ends.abort();
    veil.remove();
    if (back?.isConnected) back.focus({ preventScroll: true });
  };
  cross.addEventListener("click", close);
  veil.addEventListener("pointerdown", (event) => event.target === veil && close());
  veil.addEventListener("keydown", (event) => {
    event.stopPropagation();
    if (event.key === "Escape") close();
    if (event.key !== "Tab") return;
    const all = [...sheet.querySelectorAll("button, input, select, a[href]")].filter((e) => !e.disabled && e.offsetParent !== null);
    const to = event.shiftKey && [all[0], sheet].includes(document.activeElement) ? all[all.length - 1] : !event.shiftKey && document.activeElement === all[all.length - 1] ? all[0] : null;
    if (!to) return;
    event.preventDefault();
    to.focus();
  });
  signal.addEventListener("abort", close, { signal: ends.signal });
  document.body.append(veil);
  (sheet.querySelector("[autofocus], form input, form select") ?? cross).focus({ preventScroll: true });
  return { close };
}
