// The page's own connection: which room, with which token, and what becomes of
// a token that is refused.

import { Connection } from "../../client/connection.js";
import { ROOM_PATTERN } from "../../client/codes.js";
import { tokenInFragment } from "../models/token.js";
import { saved } from "./dom.js";

/** The room in an address like /room/{room} or /host/{room}; null for a name that can be none. */
export function roomOfPage() {
  const name = decodeURIComponent(location.pathname.split("/")[2] ?? "");
  return ROOM_PATTERN.test(name) ? name : null;
}

/**
 * Takes a token out of the address bar, so that it neither stays in the history
 * nor travels with a copied link. It lives as long as the tab.
 */
export function takeToken() {
  const given = tokenInFragment(location.hash);
  if (given) {
    keepToken(given);
    history.replaceState(null, "", location.pathname + location.search);
  }
  try {
    return sessionStorage.getItem("liveroom.token");
  } catch {
    return given;
  }
}

export function keepToken(token) {
  try {
    if (token === null) sessionStorage.removeItem("liveroom.token");
    else sessionStorage.setItem("liveroom.token", token);
  } catch {
    // Storage may be forbidden; the token holds for this page then.
  }
}

/** Says of this browser that it is the same as before, and nothing else. */
function deviceNote() {
  const note = saved.get("device") ?? crypto.getRandomValues(new Uint32Array(4)).join("-");
  saved.set("device", note);
  return note;
}

/** What this page's requests bear: the token, else that of the guest this browser was before. */
export function bearer(token) {
  return token ?? saved.get("guest") ?? undefined;
}

/** A connection to `room`, as the bearer of `token`, else as the guest this browser was before. */
export function connect(room, token, { language, signal }) {
  const scheme = location.protocol === "https:" ? "wss:" : "ws:";
  const connection = new Connection({
    url: `${scheme}//${location.host}/ws`,
    room,
    token: () => bearer(token),
    lang: () => language.code,
    note: deviceNote,
  });
  connection.on("welcome", (welcome) => {
    if (welcome.guest_token) saved.set("guest", welcome.guest_token);
  }, { signal });
  connection.on("state", ({ phase, close }) => {
    // A guest that the server no longer knows becomes a new one, once.
    if (phase !== "refused" || close?.name !== "token" || token || !saved.get("guest")) return;
    saved.set("guest", null);
    queueMicrotask(() => connection.start());
  }, { signal });
  signal.addEventListener("abort", () => connection.stop());
  return connection;
}
