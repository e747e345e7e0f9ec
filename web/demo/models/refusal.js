// A refusal in words: who is limited, why, and for how long.

const RATE_SCOPES = ["conn", "user", "user_room", "room", "ip", "global"];

/** The reason of an answer (ack, HTTP error) as a sentence without its end. */
export function whyOf(answer, language, op = "") {
  const { reason, scope } = answer;
  if (reason === "rate_limited") return language.text(`why.rate.${RATE_SCOPES.includes(scope) ? scope : "other"}`);
  if (language.has(`why.${reason}.${op}`)) return language.text(`why.${reason}.${op}`);
  if (language.has(`why.${reason}`)) return language.text(`why.${reason}`);
  return answer.msg ?? language.text("why.internal");
}

/** The whole sentence, with the wait that is left. */
export function explain(answer, language, { op = "", leftMs = answer.retry_after_ms ?? 0 } = {}) {
  const why = whyOf(answer, language, op);
  return leftMs > 0 ? language.text("why.wait", { why, t: language.duration(leftMs) }) : why;
}
