// The calls about what is kept in versions, and about the list of words of a room, which is a setting of it.

import { Calls } from "../calls.js";

/** What all nodes go by: `/filter` or `/gifts`. */
export class EditionCalls extends Calls {
  constructor(path, token, page) {
    super(`/api/v1${path}`, token, page);
  }

  current() {
    return this.call("GET", "");
  }

  publish(body, version, note) {
    return this.call("PUT", `?${new URLSearchParams(note ? { note } : {})}`, { body, headers: { "If-Match": `"v${version}"` } });
  }

  versions(before = null, limit = 10) {
    return this.call("GET", `/versions?${new URLSearchParams({ limit, ...(before && { before }) })}`);
  }

  rollback(version, current, note) {
    return this.call("POST", "/rollback", { body: { version, ...(note && { note }) }, headers: { "If-Match": `"v${current}"` } });
  }

  preview(body, signal) {
    return this.call("POST", "/preview", { body, signal });
  }

  /** Tries a text with `filter` in place of the list in force; null: with that. */
  test(text, filter, signal) {
    return this.call("POST", "/test", { body: { text, ...(filter && { filter }) }, signal });
  }
}

/** The same of one room's words: they have no version. */
export class RoomWordCalls extends Calls {
  #room;

  constructor(room, token, page) {
    super("/api/v1", token, page);
    this.#room = room;
  }

  async current() {
    const { status, body } = await this.call("GET", `/rooms/${this.#room}`);
    return { status, body: status === 200 ? body.filter ?? { words: [] } : body };
  }

  async publish(filter) {
    const { status, body } = await this.call("PUT", `/rooms/${this.#room}`, { body: { filter } });
    return { status, body: status === 200 ? filter : body };
  }

  preview(body, signal) {
    return this.call("POST", `/rooms/${this.#room}/filter/preview`, { body, signal });
  }

  test(text, filter, signal) {
    return this.call("POST", "/filter/test", { body: { text, room: this.#room, ...(filter && { filter }) }, signal });
  }
}
