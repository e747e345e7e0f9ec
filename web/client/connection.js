// One viewer's connection to one room: it says hello, comes back when it is
// lost, goes on where it was, and matches acks to requests.

import { Backoff } from "./backoff.js";
import { readClose } from "./closing.js";
import { decode, encode } from "./codec.js";
import { SUBPROTOCOL } from "./codes.js";
import { Cursor } from "./cursor.js";
import { Emitter } from "./emitter.js";
import { NO_ANSWER, Requests } from "./requests.js";

/** From connect to welcome; the server gives a hello 8 s. */
const WELCOME_WITHIN_MS = 12_000;
/** From an own ping to any frame. */
const PONG_WITHIN_MS = 10_000;
/** Silence before an own ping, unless the welcome names a heartbeat. */
const QUIET_MS = 30_000;
/** A session this old counts as success: the back-off starts anew. */
const STABLE_AFTER_MS = 10_000;
const ANSWER_WITHIN_MS = 15_000;
/** At least so long between attempts while the browser says that it is offline: a hint, which is wrong often enough. */
const OFFLINE_RETRY_MS = 15_000;

/** Events whose mid is theirs alone; what speaks of a message by its mid comes as often as it is sent. */
const SHOWN_ONCE = ["danmaku", "gift", "custom"];

const realTimers = {
  now: () => performance.now(),
  set: (fn, ms) => setTimeout(fn, ms),
  clear: (timer) => clearTimeout(timer),
};

/**
 * Events, by `on(name, listener, {signal})`:
 *
 * - `state`   `{phase, attempt, waitMs, close}`; phase is one of
 *   idle, connecting, live, waiting (for the next attempt), offline (waiting,
 *   while the browser says so: seldom, and at once when it is back), refused (will not try)
 * - `welcome` the event, with `resumed`: whether a resume was asked for
 * - `event`   each other event once, in order; those known by mid are dropped. One that comes in the frame of a
 *   welcome is of before: it has `replayed`
 * - `custom`  an event of the platform's own, `{type, data, mid, ts}`, besides as `event`
 * - `hole`    gifts that are missing: `{after, before}`
 * - `flush`   after the last event of a frame
 */
export class Connection {
  // Fixed after construction.
  #url;
  #room;
  #token;
  #lang;
  #note;
  #openSocket;
  #timers;
  #backoff;
  #requests;
  #emitter = new Emitter();

  // The connection's own state.
  #cursor = new Cursor();
  #socket = null;
  #state = { phase: "idle", attempt: 0, waitMs: 0, close: null };
  #online = true;
  #helloId = "";
  #resumed = false;
  #liveSince = 0;
  #retryTimer = null;
  #watchTimer = null;
  #quietMs = QUIET_MS;

  /**
   * @param {object} options
   * @param {string} options.url      ws:// or wss:// address of the server's /ws
   * @param {string} options.room
   * @param {() => string|undefined} [options.token] asked before each hello
   * @param {() => string} [options.lang]            asked before each hello
   * @param {() => string|undefined} [options.note]  an opaque id of this device, 1 to 64 of A-Z a-z 0-9 _ . : @ -, by which a banned guest is known again
   */
  constructor({ url, room, token = () => undefined, lang = () => undefined, note = () => undefined, openSocket, timers = realTimers, random = Math.random }) {
    this.#url = url;
    this.#room = room;
    this.#token = token;
    this.#lang = lang;
    this.#note = note;
    this.#openSocket = openSocket ?? ((address) => new WebSocket(address, SUBPROTOCOL));
    this.#timers = timers;
    this.#backoff = new Backoff({ random });
    this.#requests = new Requests(timers, random);
  }

  get state() {
    return this.#state;
  }

  get live() {
    return this.#state.phase === "live";
  }

  on(name, listener, options) {
    this.#emitter.on(name, listener, options);
  }

  nextId() {
    return this.#requests.nextId();
  }

  /** Connects, or connects now instead of later. */
  start() {
    if (this.#socket) return;
    this.#timers.clear(this.#retryTimer);
    this.#connect();
  }

  /** Ends the connection for good; `start` would begin it again. */
  stop() {
    this.#timers.clear(this.#retryTimer);
    this.#drop(1000);
    this.#become("idle");
  }

  /** Tells what the browser believes of the network. */
  setOnline(online) {
    if (online === this.#online) return;
    this.#online = online;
    if (!["offline", "waiting"].includes(this.#state.phase)) return;
    if (online) this.start();
    else this.#wait(this.#state.waitMs, this.#state.close);
  }

  /**
   * Sends an operation and returns the promise of its ack. It never rejects:
   * without an answer the code is 0 and the reason not_live, lost or timeout.
   */
  request(op, fields = {}, { id = this.nextId(), answerWithinMs = ANSWER_WITHIN_MS } = {}) {
    if (!this.live) return Promise.resolve(NO_ANSWER.notLive);
    const frame = encode(op, { id, ...fields });
    const answer = this.#requests.open(id, answerWithinMs);
    this.#socket.send(frame);
    return answer;
  }

  #connect() {
    this.#become("connecting");
    let socket;
    try {
      socket = this.#openSocket(this.#url);
    } catch {
      this.#lost(readClose(1006));
      return;
    }
    this.#socket = socket;
    const mine = (handler) => (event) => {
      if (this.#socket === socket) handler(event);
    };
    socket.onopen = mine(() => this.#hello());
    socket.onmessage = mine((event) => this.#frame(event.data));
    socket.onclose = mine((event) => this.#lost(readClose(event.code, event.reason)));
    this.#watch(WELCOME_WITHIN_MS, () => this.#giveUp());
  }

  #hello() {
    this.#helloId = this.nextId();
    const resume = this.#cursor.resume;
    this.#resumed = resume !== undefined;
    this.#socket.send(encode("hello", {
      id: this.#helloId, room: this.#room, token: this.#token() || undefined, lang: this.#lang(), note: this.#note() || undefined, resume,
    }));
  }

  #frame(data) {
    const events = decode(data);
    const replayed = events.some((event) => event.ev === "welcome");
    for (const event of events) {
      this.#take(replayed ? { ...event, replayed } : event);
      if (!this.#socket) return;
    }
    if (this.live) this.#watchQuiet();
    this.#emitter.emit("flush");
  }

  #take(event) {
    if (event.ev === "welcome") return this.#welcome(event);
    if (event.ev === "ack") {
      if (this.#requests.answer(event)) return;
    } else if (SHOWN_ONCE.includes(event.ev) && !this.#cursor.fresh(event.mid)) {
      return;
    }
    if (event.ev === "danmaku") this.#cursor.danmaku(event);
    if (event.ev === "gift") {
      const hole = this.#cursor.gift(event);
      if (hole) this.#emitter.emit("hole", hole);
    }
    this.#emitter.emit("event", event);
    if (event.ev === "custom") this.#emitter.emit("custom", event);
  }

  #welcome(event) {
    this.#cursor.welcome(event, this.#resumed);
    this.#liveSince = this.#timers.now();
    if (event.heartbeat_ms > 0) this.#quietMs = event.heartbeat_ms * 1.2;
    this.#become("live");
    this.#emitter.emit("welcome", { ...event, resumed: this.#resumed });
  }

  /** Browsers answer protocol pings themselves and say nothing of it, hence an own one after silence. */
  #watchQuiet() {
    this.#watch(this.#quietMs, () => {
      this.#watch(PONG_WITHIN_MS, () => this.#giveUp());
      this.#socket.send(encode("ping", { id: this.nextId() }));
    });
  }

  #watch(ms, action) {
    this.#timers.clear(this.#watchTimer);
    this.#watchTimer = this.#timers.set(action, ms);
  }

  #giveUp() {
    this.#drop(4000);
    this.#lost(readClose(1006));
  }

  /** Lets go of the socket at once: on a dead network a close would be told minutes later. */
  #drop(code) {
    const socket = this.#socket;
    this.#socket = null;
    this.#timers.clear(this.#watchTimer);
    this.#requests.loseAll();
    if (!socket) return;
    socket.onopen = socket.onmessage = socket.onclose = null;
    try {
      socket.close(code);
    } catch {
      // A socket that never opened may refuse; it is let go either way.
    }
  }

  #lost(close) {
    const lived = this.live ? this.#timers.now() - this.#liveSince : 0;
    this.#drop(1000);
    if (lived >= STABLE_AFTER_MS) this.#backoff.reset();
    if (close.again === "never") {
      this.#become("refused", 0, close);
      return;
    }
    const waitMs = close.again === "asked" ? this.#backoff.asked(close.reconnectInMs) : this.#backoff.next();
    this.#wait(waitMs, close);
  }

  #wait(asked, close) {
    const waitMs = this.#online ? asked : Math.max(asked, OFFLINE_RETRY_MS);
    this.#timers.clear(this.#retryTimer);
    this.#become(this.#online ? "waiting" : "offline", waitMs, close);
    this.#retryTimer = this.#timers.set(() => this.start(), waitMs);
  }

  #become(phase, waitMs = 0, close = null) {
    this.#state = { phase, waitMs, close, attempt: this.#backoff.attempt };
    this.#emitter.emit("state", this.#state);
  }
}
