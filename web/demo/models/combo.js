// Gift banners: one per giver and gift, which grows while the combo lasts.

/** A banner stays this long after its last gift. */
export const STAY_MS = 3600;
const WAITING = 30;

export class Combos {
  #slots;
  #shown = [];
  #waiting = [];
  #nextKey = 1;

  /** `slots` banners are shown at once; the others wait. */
  constructor(slots = 3) {
    this.#slots = slots;
  }

  set slots(count) {
    this.#slots = count;
  }

  /** Takes a gift event. A banner of the same giver and gift grows, else a new one queues, the dearest first. */
  gift(event, worth, now) {
    const id = `${event.user.id}\n${event.gift}`;
    const total = Math.max(event.combo ?? 0, event.count);
    const banner = [...this.#shown, ...this.#waiting].find((b) => b.id === id);
    if (banner) {
      banner.total = Math.max(total, banner.total + (event.combo ? 0 : event.count));
      banner.worth += worth;
      banner.until = now + STAY_MS;
      return banner;
    }
    const added = { id, key: this.#nextKey++, user: event.user, gift: event.gift, total, worth, until: now + STAY_MS };
    this.#waiting.push(added);
    this.#waiting.sort((a, b) => b.worth - a.worth || a.key - b.key);
    this.#waiting.length = Math.min(this.#waiting.length, WAITING);
    return added;
  }

  /** The banners to show at `now`, in the order they came. */
  at(now) {
    this.#shown = this.#shown.filter((b) => b.until > now);
    while (this.#shown.length < this.#slots && this.#waiting.length > 0) {
      const next = this.#waiting.shift();
      next.until = now + STAY_MS;
      this.#shown.push(next);
    }
    return this.#shown;
  }

  get empty() {
    return this.#shown.length === 0 && this.#waiting.length === 0;
  }
}
