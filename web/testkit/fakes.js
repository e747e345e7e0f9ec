// Time and sockets that tests drive by hand.

export class FakeTimers {
  #now = 0;
  #next = 1;
  #waiting = new Map();

  now = () => this.#now;

  set = (fn, ms) => {
    const id = this.#next++;
    this.#waiting.set(id, { at: this.#now + ms, fn });
    return id;
  };

  clear = (id) => {
    this.#waiting.delete(id);
  };

  get size() {
    return this.#waiting.size;
  }

  /** Lets `ms` pass, firing what is due in the order of its time, with promises settled between. */
  async pass(ms) {
    const end = this.#now + ms;
    for (;;) {
      const due = [...this.#waiting].filter(([, t]) => t.at <= end).sort((a, b) => a[1].at - b[1].at || a[0] - b[0])[0];
      if (!due) break;
      this.#waiting.delete(due[0]);
      this.#now = Math.max(this.#now, due[1].at);
      due[1].fn();
      await settle();
    }
    this.#now = end;
    await settle();
  }
}

export async function settle() {
  for (let i = 0; i < 10; i++) await Promise.resolve();
}

export class FakeSocket {
  sent = [];
  closedWith = null;
  onopen = null;
  onmessage = null;
  onclose = null;

  send(text) {
    this.sent.push(JSON.parse(text));
  }

  close(code) {
    this.closedWith = code;
  }

  opens() {
    this.onopen?.({});
  }

  says(...events) {
    this.onmessage?.({ data: JSON.stringify(events) });
  }

  closes(code, reason = "") {
    this.onclose?.({ code, reason });
  }
}
