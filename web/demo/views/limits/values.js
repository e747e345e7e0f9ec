// Values of rules and changes of them, as people read them.

import { detail, direction } from "../../models/limits/diff.js";
import { make } from "../dom.js";

/** A field's value in few words. */
export function valueText(field, value, language) {
  if (field === "per" || field.endsWith(".per")) return value ?? "1s";
  if (value === undefined || value === null) return language.text("limits.none");
  if (typeof value === "boolean") return language.text(value ? "limits.on" : "limits.off");
  if (typeof value === "number") return language.number(value);
  if (Array.isArray(value)) return value.map((v) => (typeof v === "object" ? limitText(v, language) : v)).join(", ");
  if (typeof value === "object") return "rate" in value ? limitText(value, language) : Object.entries(value).map(([k, v]) => `${k} ${valueText(k, v, language)}`).join(", ");
  return String(value);
}

function limitText({ below, rate, per, burst }, language) {
  const pace = `${language.number(rate ?? 0)}/${per ?? "s"} +${language.number(burst ?? 0)}`;
  return below ? `<${language.compact(below)}: ${pace}` : pace;
}

/** A list of changes by rule. */
export function changeList(changes, language) {
  const list = make("ul", "changes");
  const byRule = new Map();
  for (const change of changes) byRule.set(change.rule, [...(byRule.get(change.rule) ?? []), change]);
  for (const [rule, of] of byRule) {
    const item = make("li");
    item.append(make("p", "mono rule", rule));
    for (const change of of.flatMap(detail)) item.append(changeLine(change, language));
    list.append(item);
  }
  return list;
}

function changeLine(change, language) {
  const line = make("p", "change");
  const way = direction(change);
  if (way !== 0) line.dataset.way = way < 0 ? "stricter" : "looser";
  if (change.field === undefined) {
    const came = change.before === undefined;
    line.append(make("b", "", language.text(came ? "limits.ruleCame" : "limits.ruleWent")));
    return line;
  }
  line.append(make("span", "field", fieldName(change.field, language)));
  const was = make("del", "", valueText(change.field, change.before, language));
  const is = make("ins", "", valueText(change.field, change.after, language));
  line.append(was, make("i", "", "→"), is);
  if (way !== 0) line.append(make("small", "", language.text(way < 0 ? "limits.stricter" : "limits.looser")));
  return line;
}

/** A path like `tiers[0].rate` as "Tiers 1 · Rate". */
export function fieldName(path, language) {
  return path.split(".").map((part) => {
    const [, field, index] = /^([^[]*)(?:\[(\d+)\])?$/.exec(part) ?? [part, part];
    const key = `limits.fieldOf.${field}`;
    const name = language.has(key) ? language.text(key) : language.has(`role.${field}`) ? language.text(`role.${field}`) : field;
    return index === undefined ? name : `${name} ${Number(index) + 1}`;
  }).join(" · ");
}

/** An instant, with how long ago it was. */
export function timeText(at, language) {
  if (!at) return "–";
  const date = new Date(at);
  const today = date.toDateString() === new Date().toDateString();
  return new Intl.DateTimeFormat(language.code, today ? { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false }
    : { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", hour12: false }).format(date);
}
