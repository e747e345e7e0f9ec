// Asks the server again and again, one request at a time, and less often while
// it does not answer.

import { within } from "../models/older.js";

const TIMEOUT_MS = 5000;
const SLOWEST_MS = 15_000;

/**
 * GETs `path` every `ms`, with `token()` as bearer, and hands on `{status, body}`;
 * the status is 0 when there was no answer. Pauses while the page is hidden.
 * Returns a function that asks at once.
 */
export function poll(path, { ms, token = () => null, as = "json", signal, onAnswer }) {
  let timer = 0;
  let failures = 0;
  const ask = async () => {
    clearTimeout(timer);
    if (signal.aborted || document.hidden) return;
    const answer = await get(path, token(), signal, as);
    if (signal.aborted) return;
    failures = answer.status === 0 || answer.status >= 500 ? failures + 1 : 0;
    onAnswer(answer);
    clearTimeout(timer);
    timer = setTimeout(ask, Math.min(SLOWEST_MS, ms * 2 ** Math.min(failures, 5)));
  };
  signal.addEventListener("abort", () => clearTimeout(timer));
  document.addEventListener("visibilitychange", () => document.hidden || ask(), { signal });
  ask();
  return ask;
}

/** One GET: `{status, body}`; the status is 0 when there was no answer. */
export async function get(path, token, signal, as = "json") {
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const ends = within(TIMEOUT_MS, signal);
  try {
    const response = await fetch(path, { headers, signal: ends });
    return { status: response.status, body: await (as === "json" ? response.json() : response.text()) };
  } catch {
    return { status: 0, body: null };
  }
}
