// What a person types, as the value of a field, and back.

/** A whole number out of "1,000", "1 000" or "１０００"; undefined for nothing, the text itself when it is none. */
export function readNumber(text) {
  const plain = text.normalize("NFKC").replace(/[\s,_']/g, "");
  if (plain === "") return undefined;
  return /^-?\d{1,15}$/.test(plain) ? Number(plain) : text;
}

/** A list out of what is written between commas, spaces and lines. */
export function readList(text) {
  const items = text.split(/[\s,，、;；]+/).filter(Boolean);
  return [...new Set(items)];
}
