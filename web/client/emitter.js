// Named listeners that an AbortSignal can end.

export class Emitter {
  #listeners = new Map();

  /** Calls `listener` for each `name` until `signal` aborts. */
  on(name, listener, { signal } = {}) {
    if (signal?.aborted) return;
    let set = this.#listeners.get(name);
    if (!set) this.#listeners.set(name, (set = new Set()));
    set.add(listener);
    signal?.addEventListener("abort", () => set.delete(listener), { once: true });
  }

  /** For the owner: calls the listeners of `name`, in the order they came. */
  emit(name, value) {
    for (const listener of [...(this.#listeners.get(name) ?? [])]) listener(value);
  }

  clear() {
    this.#listeners.clear();
  }
}
