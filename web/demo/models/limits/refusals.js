// How many requests a room refused lately. The server keeps one line for each user and rule, with a count that grows;
// what a line grew by between two looks is what was refused since.

export class RefusalCount {
  #window;
  #counts = null;
  #growth = [];

  constructor(windowMs = 60_000) {
    this.#window = windowMs;
  }

  /** Takes the lines of a room, as readRefusals gives them, and returns how many were refused within the time. */
  take(refusals, now) {
    const counts = new Map(refusals.map((r) => [`${r.user.id}\n${r.action}\n${r.answer.rule ?? r.answer.reason}`, r.count]));
    if (this.#counts) {
      let n = 0;
      for (const [id, count] of counts) {
        const before = this.#counts.get(id) ?? 0;
        n += count < before ? count : count - before; // a line that was pushed out begins anew
      }
      this.#growth.push({ at: now, n });
    }
    this.#counts = counts;
    this.#growth = this.#growth.filter((g) => g.at > now - this.#window);
    return this.sum;
  }

  get sum() {
    return this.#growth.reduce((sum, g) => sum + g.n, 0);
  }
}
