// What somebody must type to publish a set that the preview warns of: the very figure it warns of.

/** `{of, number}`: of is "messages" or "users" (whole percent, 1 to 100), else "version". */
export function confirmation(report, version) {
  const reason = report?.reasons?.[0];
  if (!reason) return { of: "version", number: version };
  const of = reason.code === "refuses_more_users" ? "users" : "messages";
  const from = report.actions.find((a) => a.name === reason.action) ?? report;
  const line = from.lines.find((l) => l.kind === "refused" && l.of === of);
  return { of, number: Math.max(1, Math.round((line?.proposed.share ?? 0) * 100)) };
}

export function confirms(typed, { number }) {
  return typed.normalize("NFKC").replace(/[\s%]/g, "") === String(number);
}
