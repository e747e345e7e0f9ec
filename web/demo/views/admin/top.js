// Who the limits refuse most, on all nodes.

import { actionName } from "../../models/limits/sentence.js";
import { $, make } from "../dom.js";
import { fillTable, row, stacked } from "../tables.js";

const MOST_USERS = 10;

export class TopUsers {
  #language;
  #onWhy;

  /** `onWhy` gets `{action, room, user}`. */
  constructor(page, onWhy) {
    this.#language = page.language;
    this.#onWhy = onWhy;
  }

  show(users) {
    const language = this.#language;
    fillTable($("top"), $("top-none"), users.slice(0, MOST_USERS).map((u) => {
      const why = make("button", "open");
      why.type = "button";
      why.title = language.text("admin.why");
      why.append(make("bdi", "", u.user));
      why.addEventListener("click", () => this.#onWhy({ action: u.action, room: u.room ?? "", user: u.user }));
      const what = stacked(actionName(u.action, language), u.rule);
      return row([why, what, make("b", u.refused > 0 ? "bad" : "soft", language.compact(u.refused)), language.compact(u.degraded)], [2, 3]);
    }));
  }
}
