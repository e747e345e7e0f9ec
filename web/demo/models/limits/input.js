// What a person types, as the value of a field, and back.

/** A whole number out of "1,000", "1 000" or "１０００"; undefined for nothing, the text itself when it is none. */
export function readNumber(text) {
  const plain = text.normalize("NFKC").replace(/[\s,_']/g, "");
  if (plain === "") return undefined;
  return /^-?\d{1,15}$/.test(plain) ? Number(plain) : text;
}

const ROUTE = "api:";

/** The actions of a rule with the API's routes, as templates between commas, in place of those it had. */
export function withRoutes(actions, text) {
  const routes = text.split(/[,，、\n]+/).map((r) => r.trim()).filter(Boolean);
  return [...actions.filter((a) => !a.startsWith(ROUTE)), ...new Set(routes.map((r) => ROUTE + r))];
}

/** The routes among a rule's actions, between commas. */
export function routesOf(actions) {
  return actions.filter((a) => a.startsWith(ROUTE)).map((a) => a.slice(ROUTE.length)).join(", ");
}

/** A list out of what is written between commas, spaces and lines. */
export function readList(text) {
  const items = text.split(/[\s,，、;；]+/).filter(Boolean);
  return [...new Set(items)];
}
