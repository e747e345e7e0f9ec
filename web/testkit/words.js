// The pages' words by language, as the operators' page has them.

import { readFileSync, readdirSync } from "node:fs";

const folder = new URL("../../internal/words/", import.meta.url);

export const tables = Object.fromEntries(readdirSync(folder).filter((f) => f.endsWith(".json")).map((f) => {
  const { page, admin } = JSON.parse(readFileSync(new URL(f, folder), "utf8"));
  return [f.replace(".json", ""), { ...page, ...admin }];
}));
