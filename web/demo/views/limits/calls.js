// The calls of the API that the limits desk makes. Each answers `{status, body, tag}`; the status is 0 without an answer.

import { Calls } from "../calls.js";

export class LimitCalls extends Calls {
  constructor(token, page) {
    super("/api/v1/limits", token, page);
  }

  rules() {
    return this.call("GET", "/rules");
  }

  publish(body, { version, note, override }) {
    const query = new URLSearchParams({ ...(note && { note }), ...(override && { override: "true" }) });
    return this.call("PUT", `/rules?${query}`, { body, headers: { "If-Match": `"v${version}"` } });
  }

  /** `signal` ends it when a newer question makes it useless. */
  preview(body, signal) {
    return this.call("POST", "/preview", { body, signal });
  }

  versions(before = null, limit = 20) {
    const query = new URLSearchParams({ limit, ...(before && { before }) });
    return this.call("GET", `/versions?${query}`);
  }

  rollback(version, current, note) {
    return this.call("POST", "/rollback", { body: { version, ...(note && { note }) }, headers: { "If-Match": `"v${current}"` } });
  }

  guard() {
    return this.call("GET", "/guard");
  }

  explain(question) {
    return this.call("GET", `/explain?${new URLSearchParams(question)}`);
  }

  reset(subject) {
    return this.call("DELETE", `/explain?${new URLSearchParams(subject)}`);
  }
}
