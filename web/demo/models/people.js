// Who is in a room and has been, read from GET /api/v1/rooms/{room}/people.

const ROLES = ["host", "moderator", "admin", "service"];

/** `{now, sessions, show, people, more}`; show is null while nothing is known of it. */
export function readPeople(body) {
  return {
    now: count(body?.now),
    sessions: count(body?.sessions),
    show: readShow(body?.show),
    people: (Array.isArray(body?.people) ? body.people : []).filter((p) => typeof p?.id === "string").map((p) => ({
      user: p,
      role: ROLES.includes(p.role) ? p.role : "viewer",
      since: count(p.since),
      sessions: Math.max(1, count(p.sessions)),
    })),
    more: typeof body?.next === "string",
  };
}

/** `{begin, end, people, exact, peak, peakAt, minutes}`, or null. */
export function readShow(show) {
  if (typeof show?.begin !== "number") return null;
  return {
    begin: show.begin,
    end: count(show.end),
    people: count(show.people),
    exact: show.exact === true,
    peak: count(show.peak),
    peakAt: count(show.peak_at),
    minutes: Array.isArray(show.people_by_minute) ? show.people_by_minute.map(count) : [],
  };
}

function count(value) {
  return typeof value === "number" && Number.isFinite(value) && value > 0 ? value : 0;
}
