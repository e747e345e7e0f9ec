// A list of words that is changed before it is put in force: of the platform, or of a room.

/** What becomes of a message with the word, the mildest first. */
export const ACTIONS = ["replace", "sender_only", "hold", "refuse"];
export const MAX_BYTES = 256;

/** What is pasted by who takes words for regular expressions, as package filter knows it. */
export const EXPRESSION = /\\[a-zA-Z.(\[{*+?^$|]|[.\])][*+?]|\.\{|\[\^?[^\]\s]-[^\]\s]|\(\?[:=!<iPms]|\([^)\s]*\|[^)\s]*\)|^\^.+\$$|^\/.+\/[gimsuy]*$/;

/** What is wrong with a word, before the server has seen it: "" for nothing. */
export function faultOf(word, whole = false) {
  if (word === "") return "empty";
  if (new TextEncoder().encode(word).length > MAX_BYTES) return "long";
  if (EXPRESSION.test(word)) return "expression";
  const said = word.normalize("NFKC").match(/[\p{L}\p{N}]/gu) ?? [];
  if (said.length === 0) return "nothing";
  return said.length === 1 && said[0] < "\x80" && !whole ? "short" : "";
}

/** Actions with their names, for a choice. */
export function actionOptions(language) {
  return ACTIONS.map((a) => [a, language.text(`words.actionOf.${a}`)]);
}

/** What the server says of a list, as faults by path. */
export function wordFaults(body) {
  const msg = body?.msg ?? "";
  const [, path, problem] = /(words\[\d+\]\.\w+): (.*)/s.exec(msg) ?? [];
  if (path) return [{ path, problem }];
  return msg ? [{ path: "", problem: msg }] : [];
}

/** Lines as words: what stands behind a comma or a tab may be an action, else it is the one given. Empty lines are none. */
export function readLines(text, action) {
  return text.split(/\r?\n/).map((line) => line.trim()).filter(Boolean).map((line) => {
    const [, word, own] = /^(.*?)\s*[\t,，;；]\s*(\w+)$/.exec(line) ?? [];
    return ACTIONS.includes(own) ? { word, action: own } : { word: line, action };
  });
}

export class WordDraft {
  #base;
  #entries = [];
  #next = 1;
  #options;

  /** `base` is what is in force: `{words: [{word, action, whole}], traditional, pinyin, version}`. */
  constructor(base) {
    this.#base = base;
    this.reset();
  }

  get base() {
    return this.#base;
  }

  reset() {
    this.#entries = (this.#base.words ?? []).map((w) => this.#entry(w, w));
    this.#options = { traditional: this.#base.traditional === true, pinyin: this.#base.pinyin === true };
  }

  #entry({ word, action, whole = false }, was) {
    return { key: this.#next++, word, action, whole, was, removed: false };
  }

  #live() {
    return this.#entries.filter((e) => !e.removed);
  }

  /** The list as it is sent. */
  get list() {
    return { words: this.#live().map(plain), ...this.options };
  }

  get options() {
    return { ...this.#options };
  }

  get size() {
    return this.#live().length;
  }

  setOption(name, on) {
    this.#options[name] = on;
  }

  entry(key) {
    return this.#entries.find((e) => e.key === key);
  }

  /** The key of the word at an index of what was sent. */
  keyAt(index) {
    return this.#live()[index]?.key ?? null;
  }

  /** Entries whose word has a text in it, the changed ones first: `{shown, more}`, at most `most` of them. */
  find(text, most) {
    const wanted = text.trim().toLowerCase();
    const found = this.#entries.filter((e) => e.word.toLowerCase().includes(wanted));
    const first = [...found.filter(touched), ...found.filter((e) => !touched(e))];
    return { shown: first.slice(0, most), more: Math.max(0, first.length - most) };
  }

  /** Puts a word on top of the list: "" or what is wrong with it. One that was removed is back. */
  add(word, action, whole = false) {
    const text = word.trim();
    const fault = faultOf(text, whole);
    if (fault) return fault;
    const known = this.#entries.find((e) => e.word === text && e.whole === whole);
    if (known && !known.removed) return "known";
    if (known) Object.assign(known, { removed: false, action });
    else this.#entries.unshift(this.#entry({ word: text, action, whole }, null));
    return "";
  }

  /** Adds many: `{added, known, bad: [{word, fault}]}`. */
  addMany(words) {
    const out = { added: 0, known: 0, bad: [] };
    const known = new Set(this.#live().map((e) => e.word));
    const fresh = [];
    for (const { word, action } of words) {
      const fault = faultOf(word);
      if (fault) out.bad.push({ word, fault });
      else if (known.has(word)) out.known += 1;
      else {
        known.add(word);
        fresh.push(this.#entry({ word, action }, null));
      }
    }
    out.added = fresh.length;
    this.#entries = [...fresh, ...this.#entries];
    return out;
  }

  /** Changes `{word, action, whole}` of one. */
  set(key, change) {
    Object.assign(this.entry(key), change);
  }

  /** Takes a word away, or one that was taken away back. */
  toggle(key) {
    const entry = this.entry(key);
    if (entry.was === null) this.#entries = this.#entries.filter((e) => e !== entry);
    else entry.removed = !entry.removed;
  }

  /** `{added, removed, changed: [{was, is}], options}`; of the options those that differ. */
  changes() {
    const pairs = this.#entries.filter((e) => e.was !== null && !e.removed && touched(e)).map((e) => ({ was: plain(e.was), is: plain(e) }));
    return {
      added: this.#entries.filter((e) => e.was === null).map(plain),
      removed: this.#entries.filter((e) => e.removed).map((e) => plain(e.was)),
      changed: pairs,
      options: Object.keys(this.#options).filter((o) => this.#options[o] !== (this.#base[o] === true)),
    };
  }

  get changed() {
    const { added, removed, changed, options } = this.changes();
    return added.length + removed.length + changed.length + options.length;
  }

  get dirty() {
    return this.changed > 0;
  }

  /** What is wrong with changed words: `[{index, field, code}]`, by index of what is sent. */
  faults() {
    const count = new Map();
    for (const e of this.#live()) count.set(same(e), (count.get(same(e)) ?? 0) + 1);
    return this.#live().flatMap((e, index) => {
      if (!touched(e)) return [];
      const code = faultOf(e.word, e.whole) || (count.get(same(e)) > 1 ? "known" : "");
      return code ? [{ index, field: "word", code, values: {} }] : [];
    });
  }

  /** Puts these changes on top of a list that somebody else put in force meanwhile. */
  rebase(base) {
    const { added, removed, changed, options } = this.changes();
    const wanted = this.options;
    this.#base = base;
    this.reset();
    const find = (w) => this.#entries.find((e) => same(e) === same(w));
    for (const w of removed) if (find(w)) find(w).removed = true;
    for (const { was, is } of changed) {
      if (find(was)) Object.assign(find(was), { ...is, whole: is.whole === true });
      else added.push(is);
    }
    for (const w of added) if (!find(w)) this.#entries.unshift(this.#entry(w, null));
    for (const o of options) this.#options[o] = wanted[o];
  }
}

function touched({ was, word, action, whole, removed }) {
  return removed || was === null || was.word !== word || was.action !== action || (was.whole === true) !== whole;
}

function same({ word, whole }) {
  return `${whole ? 1 : 0}${word}`;
}

function plain({ word, action, whole }) {
  return { word, action, ...(whole && { whole: true }) };
}
