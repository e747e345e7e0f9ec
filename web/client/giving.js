// A gift is paid for, so its sender must learn what became of it.

/** Between two tries with the same id, unless the server names a wait. */
const PAUSE_MS = 1500;

const realTimers = { now: () => performance.now(), set: (fn, ms) => setTimeout(fn, ms) };

/**
 * Sends a gift until its fate is known, for at most `withinMs` (the welcome's
 * `gift_retry_ms`). The id stays the same over all tries, also over sockets:
 * together with user and room it is what makes the effect happen once.
 *
 * Resolves with the final ack, or with the last answer when the time is up or
 * `signal` aborts, and then `unsure` is true in it: nobody can say that the gift
 * was not given. `onUnsure` is called once when the first try left it open.
 */
export async function give(connection, { gift, count }, { withinMs = 600_000, signal, onUnsure = () => {}, timers = realTimers } = {}) {
  const id = connection.nextId();
  const end = timers.now() + withinMs;
  let sent = false;
  let tries = 0;
  for (;;) {
    const answer = await connection.request("gift", { gift, count }, { id });
    sent ||= answer.reason !== "not_live";
    if (!sent || !open(answer)) return answer;
    if (signal?.aborted || timers.now() >= end) return { ...answer, unsure: true };
    tries += 1;
    if (tries === 1) onUnsure(answer);
    await pause(timers, answer.retry_after_ms ?? PAUSE_MS);
  }
}

function open(answer) {
  return answer.code === 0 || (answer.code === 503 && answer.outcome === "unknown");
}

function pause(timers, ms) {
  return new Promise((resolve) => timers.set(resolve, ms));
}
