// Where a fault belongs: a path of the server to a rule and one of its fields, a field to the control that shows it.

/** `rules[2].degrade.burst` is `{index: 2, field: "degrade.burst"}`; so in words and gifts; any other path has index null. */
export function placeFault({ path = "", problem = "" }) {
  const match = /^(?:rules|gifts|words)\[(\d+)\](?:\.(.*))?$/.exec(path);
  return match ? { index: Number(match[1]), field: match[2] ?? "", problem } : { index: null, field: path, problem };
}

/** The one of `fields` that shows a fault: itself, else the nearest that it lies in; "" when there is none. */
export function controlFor(field, fields) {
  let at = field;
  while (at !== "") {
    if (fields.includes(at)) return at;
    const cut = Math.max(at.lastIndexOf("."), at.lastIndexOf("["));
    at = cut > 0 ? at.slice(0, cut) : "";
  }
  return "";
}

/**
 * The faults of this page and of the server, by the key of their rule: `{byKey: Map(key, [{field, text}]), others, count}`.
 * A field that this page has a sentence for does not get the server's as well.
 */
export function gather(local, remote, keyAt, textOf) {
  const byKey = new Map();
  const others = [];
  const put = (index, field, text) => {
    const key = index === null ? null : keyAt(index);
    if (key === null) return others.push(text);
    if (!byKey.has(key)) byKey.set(key, []);
    const list = byKey.get(key);
    if (!list.some((f) => f.field === field)) list.push({ field, text });
  };
  for (const fault of local) put(fault.index, fault.field, textOf(fault));
  for (const fault of remote.map(placeFault)) put(fault.index, fault.field, fault.problem);
  return { byKey, others, count: others.length + [...byKey.values()].reduce((n, list) => n + list.length, 0) };
}
