// The versions of the limits, newest first.

const KINDS = ["seed", "publish", "rollback", "guard", "file"];
/** How the guard's watch over a version ends. */
const ENDS = ["kept", "rolled_back", "superseded", "unjudged"];

/** Takes the answer of GET /limits/versions. */
export function readVersions(body) {
  const versions = Array.isArray(body?.versions) ? body.versions : [];
  return versions.filter((v) => Number.isInteger(v?.version)).map((v) => ({
    version: v.version,
    kind: KINDS.includes(v.kind) ? v.kind : "publish",
    author: v.author ?? "",
    note: v.note ?? "",
    override: v.override === true,
    restores: v.restores ?? null,
    at: Date.parse(v.time) || 0,
    changes: v.changes ?? null,
    changed: countOf(v.changes),
    rules: Array.isArray(v.rules) ? v.rules : [],
    watch: ENDS.includes(v.watch?.end) ? v.watch.end : null,
  })).sort((a, b) => b.version - a.version);
}

/** How many things a version changed: of a list each is named, of words they are counted. */
function countOf(changes) {
  if (Array.isArray(changes)) return new Set(changes.map((c) => c.rule ?? c.gift)).size;
  return changes ? changes.added + changes.removed + (changes.options ? 1 : 0) : 0;
}
