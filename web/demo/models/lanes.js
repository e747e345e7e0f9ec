// Which lane a danmaku flies in, so that no two ever overlap.
//
// A scrolling text of width w crosses a stage of width W in a fixed time D, its
// head starting at x = W and its tail ending at x = 0; longer texts are faster.
// Motion is linear, so two texts of a lane stay apart when they are apart at
// both ends of the time they share: when the later one enters, and when the
// earlier one leaves. A later text is compared with the last of its lane only:
// it stays behind that one, which stays behind the one before.

/** Milliseconds a scrolling text takes, and a still one stays. */
export const FLIGHT_MS = 8000;
export const STILL_MS = 4500;
const FEWEST_WITH_STILL = 5;
/** Pixels between two texts of a lane. */
const GAP = 24;

export class Lanes {
  #width = 0;
  #density = 1;
  #rows = { top: [], scroll: [], bottom: [] };

  /**
   * Fits the lanes to a stage, in pixels. Its first and last rows are kept for
   * still texts; on a stage too low for that they scroll like the others. Texts in flight are forgotten when the geometry changed: their
   * owner clears the stage.
   */
  resize(width, height, rowHeight) {
    const count = Math.max(1, Math.floor(height / rowHeight));
    const still = count >= 10 ? 2 : count >= FEWEST_WITH_STILL ? 1 : 0;
    this.#width = width;
    this.#rows = {
      top: rowsFrom(0, still),
      scroll: rowsFrom(still, count - 2 * still),
      bottom: rowsFrom(count - 1, still, -1),
    };
  }

  /** The share of scrolling lanes in use: 0 (none) to 1. */
  set density(share) {
    this.#density = Math.min(1, Math.max(0, share));
  }

  get rowCount() {
    return this.#rows.scroll.length;
  }

  /**
   * Takes a place for a text of `width` pixels at `now` and returns
   * `{mode, row, durationMs}`, or null when every lane is taken. `own` texts may use
   * all lanes, whatever the density.
   */
  place(mode, width, now, { own = false } = {}) {
    const still = mode !== "scroll" && this.#rows[mode].length > 0;
    const place = still ? this.#still(this.#rows[mode], width, now) : this.#scroll(width, now, own);
    return place && { mode: still ? mode : "scroll", ...place };
  }

  #scroll(width, now, own) {
    const rows = this.#rows.scroll;
    const usable = own ? rows.length : Math.ceil(rows.length * this.#density);
    for (let i = 0; i < usable; i++) {
      if (!this.#follows(rows[i], width, now)) continue;
      rows[i].last = { at: now, width };
      return { row: rows[i].row, durationMs: FLIGHT_MS };
    }
    return null;
  }

  #follows({ last }, width, now) {
    if (last === null || now >= last.at + FLIGHT_MS) return true;
    const tail = last.width + GAP - this.#speed(last.width) * (now - last.at);
    if (tail > 0) return false;
    const headAtLeave = this.#width - this.#speed(width) * (last.at + FLIGHT_MS - now);
    return headAtLeave >= 0;
  }

  #still(rows, width, now) {
    if (width > this.#width) return null;
    const free = rows.find(({ last }) => last === null || now >= last.at + STILL_MS);
    if (!free) return null;
    free.last = { at: now, width };
    return { row: free.row, durationMs: STILL_MS };
  }

  /** Pixels per millisecond. */
  #speed(width) {
    return (this.#width + width) / FLIGHT_MS;
  }
}

function rowsFrom(first, count, step = 1) {
  return Array.from({ length: count }, (_, i) => ({ row: first + i * step, last: null }));
}
