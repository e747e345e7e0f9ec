// Paired bars: today's share above, the proposed one below, with what the sample leaves open.

import { telling, topShare } from "../../models/limits/preview.js";
import { actionName } from "../../models/limits/sentence.js";
import { aria, make } from "../dom.js";

const MOST_RULES = 6;

/** The figures of a report, as nodes; `brief` leaves out actions and rules. */
export function drawReport(report, language, { brief = false } = {}) {
  const t = (key, values) => language.text(`limits.${key}`, values);
  const all = make("div", "bars");
  const seen = report.lines.filter((l) => l.kind === "refused" || l.today.share + l.proposed.share > 0);
  const top = topShare(seen);
  all.append(...seen.map((l) => pair(t(`share.${l.kind}.${l.of}`), l, top, language)));
  const out = [all];
  if (brief) return out;
  const groups = [["byAction", report.actions, (a) => actionName(a.name, language)], ["byRule", report.rules, (r) => r.name]];
  for (const [title, list, nameOf] of groups) {
    const told = telling(list, MOST_RULES);
    if (told.length === 0 || (title === "byAction" && told.length < 2)) continue;
    out.push(make("h4", "", t(title)), lines(told, nameOf, title === "byRule", language));
  }
  return out;
}

function lines(told, nameOf, mono, language) {
  const list = make("div", "bars small");
  const pick = (r) => r.lines.filter((l) => l.of === "messages").sort((a, b) => spread(b) - spread(a))[0];
  const top = topShare(told.map(pick));
  list.append(...told.map((r) => {
    const line = pick(r);
    const element = pair(nameOf(r), line, top, language);
    if (mono) element.firstChild.firstChild.classList.add("mono");
    element.firstChild.append(make("small", "", language.text(`limits.kind.${line.kind}`)));
    return element;
  }));
  return list;
}

function spread({ today, proposed }) {
  return Math.abs(proposed.share - today.share) * 1000 + Math.max(proposed.share, today.share);
}

function pair(name, { kind, today, proposed, change }, top, language) {
  const element = make("div", "pair");
  element.dataset.kind = kind;
  element.dataset.change = change;
  const head = make("p");
  head.append(make("span", "", name));
  const said = make("p", "said");
  const error = proposed.exact ? "" : ` ± ${percent(proposed.error, language)}`;
  said.append(make("span", "", percent(today.share, language)), make("i", "", "→"), make("b", "", percent(proposed.share, language) + error));
  element.append(head, said, bar("was", today, top), bar("is", proposed, top));
  return element;
}

function bar(className, { share, low, high }, top) {
  const track = make("div", `track ${className}`);
  aria(track, "hidden", "true");
  const fill = make("i");
  fill.style.width = `${(share / top) * 100}%`;
  track.append(fill);
  if (high > low) {
    const whisker = make("u");
    whisker.style.left = `${(low / top) * 100}%`;
    whisker.style.width = `${((high - low) / top) * 100}%`;
    track.append(whisker);
  }
  return track;
}

/** A share as percent with as many decimals as tell something. */
export function percent(share, language) {
  const value = share * 100;
  const digits = value === 0 || value >= 10 ? 0 : value >= 1 ? 1 : 2;
  if (value > 0 && value < 0.01) return `<${language.number(0.01)}%`;
  return `${new Intl.NumberFormat(language.code, { minimumFractionDigits: 0, maximumFractionDigits: digits }).format(value)}%`;
}
