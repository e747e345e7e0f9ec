// Go's durations as text: 30s, 1m30s, 500ms.

const PART = /^(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)/;
const MS = { ns: 1e-6, us: 1e-3, "µs": 1e-3, "μs": 1e-3, ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

/** Milliseconds of a duration's text; null when it is none. */
export function parseDuration(text) {
  let rest = String(text ?? "").trim();
  if (rest === "0") return 0;
  if (rest === "") return null;
  let ms = 0;
  while (rest !== "") {
    const match = PART.exec(rest);
    if (!match) return null;
    ms += Number(match[1]) * MS[match[2]];
    rest = rest.slice(match[0].length);
  }
  return Math.round(ms * 1e6) / 1e6;
}

/** The shortest text of so many milliseconds: 90000 is 1m30s, 60000 is 1m. */
export function formatDuration(ms) {
  if (ms === 0) return "0s";
  let rest = ms;
  let text = "";
  for (const [unit, size] of [["h", MS.h], ["m", MS.m]]) {
    const n = Math.floor(rest / size);
    if (n > 0) text += `${n}${unit}`;
    rest -= n * size;
  }
  rest = Math.round(rest * 1e6) / 1e6;
  if (rest === 0) return text;
  if (rest < 1000 && text === "") return `${rest}ms`;
  return `${text}${rest / 1000}s`;
}
