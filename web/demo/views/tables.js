// Rows of tables, filled anew at each answer.

import { portray } from "../models/person.js";
import { dressFace, make } from "./dom.js";

/** A table's row from cells: texts or nodes; `right` names the numbers' columns. */
export function row(cells, right = []) {
  const tr = make("tr");
  cells.forEach((cell, i) => {
    const td = make("td", right.includes(i) ? "right" : "");
    td.append(cell);
    tr.append(td);
  });
  return tr;
}

/** Puts rows into a table and shows or hides it and the sentence for none. The focus stays on whom it was. */
export function fillTable(table, none, rows) {
  const at = table.contains(document.activeElement) ? document.activeElement.dataset.user : undefined;
  table.tBodies[0].replaceChildren(...rows);
  if (at !== undefined) [...table.querySelectorAll("[data-user]")].find((e) => e.dataset.user === at)?.focus({ preventScroll: true });
  table.hidden = rows.length === 0;
  none.hidden = rows.length > 0;
}

/** Somebody's face and name; with `onOpen(user, node)` a button. */
export function personCell(user, onOpen = null) {
  const cell = make(onOpen ? "button" : "span", "person");
  if (onOpen) {
    cell.type = "button";
    cell.dataset.user = user.id;
    cell.addEventListener("click", () => onOpen(user, cell));
  }
  const person = portray(user);
  const name = make("bdi", "", person.name);
  name.title = user.id;
  cell.append(dressFace(make("span"), person), name);
  return cell;
}

/** A number with a smaller one below it. */
export function stacked(text, below) {
  const cell = document.createDocumentFragment();
  cell.append(text);
  if (below) cell.append(make("small", "", below));
  return cell;
}

/** Pairs of a term and its value. */
export function fillFacts(list, pairs) {
  list.replaceChildren(...pairs.flatMap(([term, value]) => [make("dt", "", term), make("dd", "", value)]));
}
