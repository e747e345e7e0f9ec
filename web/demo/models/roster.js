// The live rooms, by size, and what the whole of them adds up to.

/** room2 before room10, as people count. */
const byId = new Intl.Collator("en", { numeric: true });

/** Takes the answer of GET /api/v1/rooms. Anything odd in it is left out. */
export function readRooms(body) {
  const rooms = Array.isArray(body?.rooms) ? body.rooms : [];
  return rooms
    .filter((room) => typeof room?.id === "string" && room.id !== "")
    .map((room) => ({
      id: room.id,
      title: room.title || room.id,
      online: count(room.people ?? room.online),
      likes: count(room.likes),
      danmaku: count(room.rates?.danmaku),
      closed: room.closed === true,
    }))
    .sort((a, b) => b.online - a.online || byId.compare(a.id, b.id));
}

export function totalOnline(rooms) {
  return rooms.reduce((sum, room) => sum + room.online, 0);
}

function count(value) {
  return typeof value === "number" && Number.isFinite(value) && value > 0 ? value : 0;
}
