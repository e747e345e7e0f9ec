// Danmaku that found no lane yet. A flood has more of them than a stage can
// show; the newest matter, and the own ones most.

/** How long a text may wait for a lane before it is too old to fly. */
const PATIENCE_MS = 1200;
const OWN_PATIENCE_MS = 10_000;

export class WaitingRoom {
  #capacity;
  #items = [];

  constructor(capacity = 24) {
    this.#capacity = capacity;
  }

  get size() {
    return this.#items.length;
  }

  /** Lets `item` wait. When the room is full the oldest that is not an own one goes. */
  add(item, now) {
    const waiting = { item, until: now + (item.own ? OWN_PATIENCE_MS : PATIENCE_MS) };
    if (item.own) this.#items.unshift(waiting);
    else this.#items.push(waiting);
    if (this.#items.length <= this.#capacity) return;
    const oldest = this.#items.findIndex((w) => !w.item.own);
    this.#items.splice(oldest < 0 ? this.#items.length - 1 : oldest, 1);
  }

  /** Offers each in turn to `place`, which says whether it took it; drops who waited too long. */
  offer(place, now) {
    this.#items = this.#items.filter(({ item, until }) => until > now && !place(item));
  }

  clear() {
    this.#items = [];
  }
}
