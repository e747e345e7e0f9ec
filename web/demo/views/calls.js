// Calls of the API below one address. Each answers `{status, body}`; the status is 0 without an answer.

import { within } from "../models/older.js";

const TIMEOUT_MS = 15_000;

export class Calls {
  #base;
  #token;
  #language;
  #signal;

  constructor(base, token, { language, signal }) {
    this.#base = base;
    this.#token = token;
    this.#language = language;
    this.#signal = signal;
  }

  async call(method, path, { body, headers = {}, signal } = {}) {
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
      const response = await fetch(this.#base + path, request);
      const json = response.headers.get("Content-Type")?.startsWith("application/json");
      return { status: response.status, body: json ? await response.json() : null };
    } catch {
      return { status: 0, body: null };
    }
  }
}
