// Requests under way: client ids to the promises of their acks.

/** Answers that no server gave. */
export const NO_ANSWER = {
  notLive: { code: 0, reason: "not_live" },
  lost: { code: 0, reason: "lost" },
  timeout: { code: 0, reason: "timeout" },
};

export class Requests {
  #timers;
  #prefix;
  #count = 0;
  #open = new Map();

  /** `prefix` keeps ids of two pages of one user apart; 22 random bits would do, it has 40. */
  constructor(timers, random = Math.random) {
    this.#timers = timers;
    this.#prefix = Math.floor(random() * 2 ** 40).toString(36);
  }

  get size() {
    return this.#open.size;
  }

  nextId() {
    this.#count += 1;
    return `${this.#prefix}.${this.#count.toString(36)}`;
  }

  /** The promise of the ack for `id`. It never rejects. */
  open(id, timeoutMs) {
    return new Promise((resolve) => {
      const timer = this.#timers.set(() => this.#settle(id, NO_ANSWER.timeout), timeoutMs);
      this.#open.set(id, { resolve, timer });
    });
  }

  /** Gives an ack to whoever waits for its id; says whether anybody did. */
  answer(ack) {
    return this.#settle(ack.id, ack);
  }

  /** Ends all of them: the socket they were sent on is gone. */
  loseAll() {
    for (const id of [...this.#open.keys()]) this.#settle(id, NO_ANSWER.lost);
  }

  #settle(id, answer) {
    const request = this.#open.get(id);
    if (!request) return false;
    this.#open.delete(id);
    this.#timers.clear(request.timer);
    request.resolve(answer);
    return true;
  }
}
