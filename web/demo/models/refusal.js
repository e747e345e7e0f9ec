// A refusal in words: who is limited, why, and for how long.

const RATE_SCOPES = ["conn", "user", "user_room", "room", "ip", "net", "net_room", "global"];

/**
 * The reason of an answer (ack, HTTP error) as a sentence without its end. `to`
 * says who reads it: "you" who was refused, or a host who reads of "them".
 */
export function whyOf(answer, language, op = "", to = "you") {
  const { reason, scope } = answer;
  const word = reason === "rate_limited" ? `rate.${RATE_SCOPES.includes(scope) ? scope : "other"}` : reason;
  const keys = to === "them" ? [`them.${word}`, `why.${word}`] : [`why.${word}.${op}`, `why.${word}`];
  const key = keys.find((k) => language.has(k));
  return key ? language.text(key) : answer.msg ?? language.text("why.internal");
}

/** The whole sentence, with the wait that is left. */
export function explain(answer, language, { op = "", leftMs = answer.retry_after_ms ?? 0 } = {}) {
  const why = whyOf(answer, language, op);
  return leftMs > 0 ? language.text("why.wait", { why, t: language.duration(leftMs) }) : why;
}
