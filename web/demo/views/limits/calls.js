// The calls of the API that the limits desk makes. Each answers `{status, body, tag}`; the status is 0 without an answer.

import { within } from "../../models/older.js";

const BASE = "/api/v1/limits";
const TIMEOUT_MS = 15_000;

export class LimitCalls {
  #token;
  #language;
  #signal;

  constructor(token, { language, signal }) {
    this.#token = token;
    this.#language = language;
    this.#signal = signal;
  }

  rules() {
    return this.#call("GET", "/rules");
  }

  publish(body, { version, note, override }) {
    const query = new URLSearchParams({ ...(note && { note }), ...(override && { override: "true" }) });
    return this.#call("PUT", `/rules?${query}`, { body, headers: { "If-Match": `"v${version}"` } });
  }

  /** `signal` ends it when a newer question makes it useless. */
  preview(body, signal) {
    return this.#call("POST", "/preview", { body, signal });
  }

  versions(before = null, limit = 20) {
    const query = new URLSearchParams({ limit, ...(before && { before }) });
    return this.#call("GET", `/versions?${query}`);
  }

  rollback(version, current, note) {
    return this.#call("POST", "/rollback", { body: { version, ...(note && { note }) }, headers: { "If-Match": `"v${current}"` } });
  }

  guard() {
    return this.#call("GET", "/guard");
  }

  explain(question) {
    return this.#call("GET", `/explain?${new URLSearchParams(question)}`);
  }

  reset(subject) {
    return this.#call("DELETE", `/explain?${new URLSearchParams(subject)}`);
  }

  async #call(method, path, { body, headers = {}, signal } = {}) {
    const request = {
      method,
      headers: {
        ...(this.#token && { "Authorization": `Bearer ${this.#token}` }),
        "Accept-Language": this.#language.code,
        ...(body && { "Content-Type": "application/json" }),
        ...headers,
      },
      body: body && JSON.stringify(body),
      signal: within(TIMEOUT_MS, this.#signal, ...(signal ? [signal] : [])),
    };
    try {
      const response = await fetch(BASE + path, request);
      const json = response.headers.get("Content-Type")?.startsWith("application/json");
      return { status: response.status, body: json ? await response.json() : null };
    } catch {
      return { status: 0, body: null };
    }
  }
}
