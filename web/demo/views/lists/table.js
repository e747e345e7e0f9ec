// The rows of a list of words: as many as a reader looks at, the others are found by their text.

import { actionOptions } from "../../models/lists/words.js";
import { $, aria, icon, make, named } from "../dom.js";
import { select, toggle } from "../limits/controls.js";

const MOST = 100;

export class WordTable {
  #language;
  #steps;
  #rows = new Map();

  /** `steps`: `{set(key, change), toggle(key)}`. */
  constructor(language, steps) {
    this.#language = language;
    this.#steps = steps;
  }

  /** Forgets the rows: the next ones are in the language that is spoken then. */
  clear() {
    this.#rows.clear();
  }

  show(draft, faults, wanted) {
    const { shown, more } = draft.find(wanted, MOST);
    const rows = new Map(shown.map((e) => [e.key, this.#rows.get(e.key) ?? this.#row(e)]));
    const body = $("words").tBodies[0];
    const at = document.activeElement?.dataset.word;
    const fresh = [...rows.values()].map((r) => r.node);
    const old = [...body.children];
    if (fresh.length !== old.length || fresh.some((node, i) => node !== old[i])) {
      body.replaceChildren(...fresh);
      if (at) [...body.querySelectorAll("[data-word]")].find((e) => e.dataset.word === at)?.focus({ preventScroll: true });
    }
    this.#rows = rows;
    for (const e of shown) rows.get(e.key).show(e, faults.get(e.key) ?? []);
    $("words").hidden = shown.length === 0;
    $("words-none").hidden = shown.length > 0 && more === 0;
    $("words-none").textContent = more > 0 ? this.#language.text("words.moreRows", { n: more }) : this.#language.text(draft.size > 0 ? "words.notFound" : "words.none");
  }

  #row({ key, word }) {
    const t = (name, values) => this.#language.text(`words.${name}`, values);
    const node = make("tr", "word");
    const action = select("action", actionOptions(this.#language), { onEdit: (_, value) => this.#steps.set(key, { action: value }), label: t("actionFor", { word }) });
    const whole = toggle("whole", t("wholeFor", { word }), { onEdit: (_, on) => this.#steps.set(key, { whole: on === true }), hidden: true });
    const gone = make("button", "tool");
    gone.type = "button";
    gone.addEventListener("click", () => this.#steps.toggle(key));
    const fault = make("p", "fault");
    const text = make("bdi", "", word);
    for (const [of, input] of [["action", action.input], ["whole", whole.input], ["gone", gone]]) input.dataset.word = `${key} ${of}`;
    const cells = [text, action.element, whole.element, gone].map((e, i) => {
      const cell = make("td", i === 3 ? "right" : "");
      cell.append(e);
      return cell;
    });
    cells[0].append(fault);
    node.append(...cells);
    return {
      node,
      show: (e, faults) => {
        node.dataset.state = e.removed ? "removed" : e.was === null ? "new" : e.was.action !== e.action || (e.was.whole === true) !== e.whole ? "changed" : "";
        action.input.value = e.action;
        whole.input.checked = e.whole;
        action.input.disabled = whole.input.disabled = e.removed;
        gone.replaceChildren(icon(e.removed ? "again" : "close"));
        named(gone, t(e.removed ? "keep" : "remove", { word }));
        fault.textContent = faults.map((f) => f.text).join(" · ");
        fault.hidden = faults.length === 0;
        aria(node, "invalid", faults.length > 0 ? "true" : null);
      },
    };
  }
}
