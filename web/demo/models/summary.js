// A show as the host reads it afterwards, from GET /api/v1/rooms/{room}/summary.

import { readShow } from "./people.js";

/** null for what is no summary. */
export function readSummary(body) {
  const show = readShow(body?.show);
  if (!show) return null;
  const gifts = body.gifts ?? {};
  return {
    title: String(body.title || body.room || ""),
    durationMs: number(body.duration_ms),
    show,
    danmaku: number(body.danmaku),
    byMinute: list(body.danmaku_by_minute).map(number),
    gifts: { count: number(gifts.count), value: number(gifts.value), givers: number(gifts.givers), partial: gifts.partial === true, byGift: list(gifts.by_gift).map(given), byGiver: list(gifts.by_giver).map(given) },
    acts: list(body.acts).map((a) => ({ time: number(a?.time), by: String(a?.by ?? ""), action: String(a?.action ?? ""), user: String(a?.user || a?.mid || ""), seconds: number(a?.seconds), reason: String(a?.reason ?? "") })),
    refused: list(body.refused).map((r) => ({ user: { id: String(r?.user ?? ""), name: r?.name }, action: String(r?.action ?? ""), answer: { reason: r?.reason, rule: r?.rule }, count: number(r?.count) })),
    shows: list(body.shows).map(number).filter((begin) => begin > 0),
  };
}

function given(g) {
  return { id: String(g?.id ?? ""), name: String(g?.name || g?.id || ""), count: number(g?.count), value: number(g?.value) };
}

function list(value) {
  return Array.isArray(value) ? value : [];
}

function number(value) {
  return typeof value === "number" && Number.isFinite(value) ? value : 0;
}
