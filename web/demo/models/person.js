// How a person is shown before anything is known of them: a colour and a sign.

import { graphemes } from "./older.js";

/** FNV-1a over UTF-16 units: spreads short ids well, and is the same everywhere. */
export function hash(text) {
  let h = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193);
  h ^= h >>> 15;
  return h >>> 0;
}

/** `{name, initial, tone}`; the tone is 0 to 11, a named colour of the style sheet. */
export function portray(user) {
  const id = user?.id ?? "";
  const name = user?.name || id;
  const [initial = "?"] = graphemes(name);
  return { name, initial: initial.toLocaleUpperCase(), tone: hash(id) % 12 };
}

/** The attributes that these pages show, and characters of one that there is room for. */
const HONOURS = ["level", "badge", "fan_club"];
const HONOUR_SHOWN = 16;

/** `{name, value}` of what a platform says of a user, in the order of their faces; what this page does not know is left out. */
export function honoursOf(user) {
  return HONOURS.flatMap((name) => {
    const value = user?.attrs?.[name];
    if (!["string", "number"].includes(typeof value)) return [];
    return [{ name, value: [...graphemes(String(value))].slice(0, HONOUR_SHOWN).join("") }];
  });
}
