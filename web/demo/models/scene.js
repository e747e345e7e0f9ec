// The drawn stage of a room: its colours, its town and its performer follow
// from the room's name, so that everybody sees the same one.

import { hash } from "./person.js";

/** sky from top to horizon, disc, and two light colours. */
const PALETTES = [
  { name: "harbour", sky: ["#050c1d", "#0d2a5a", "#2a6db8", "#8cc8f0"], disc: "#d6ecff", lights: ["#6aa8ff", "#7cf0ff"], town: "#06122a" },
  { name: "jade", sky: ["#04121a", "#06303a", "#0f6b62", "#5fc7a0"], disc: "#c9f5d6", lights: ["#3bd3a8", "#8ad7ff"], town: "#04161d" },
  { name: "festival", sky: ["#0d0a14", "#35161a", "#9a4a16", "#f0a541"], disc: "#ffe0a0", lights: ["#ffc457", "#ff6a4d"], town: "#180d0f" },
  { name: "peony", sky: ["#0b0a1f", "#2b1650", "#86307d", "#f08aa8"], disc: "#ffd0dc", lights: ["#ff7ab8", "#9d8bff"], town: "#120b26" },
  { name: "vermilion", sky: ["#0a0a18", "#2a1233", "#8f2b2c", "#e8703d"], disc: "#ffb27a", lights: ["#ff5c4d", "#ffc457"], town: "#160b1b" },
];

const PERFORMERS = ["dj", "guitarist", "singer"];
const ROOFS = ["flat", "flat", "step", "mast", "slope", "pagoda", "dome"];

/** Numbers from 0 to 1 that follow from a seed (mulberry32). */
export function seeded(seed) {
  let a = seed >>> 0;
  return () => {
    a = (a + 0x6d2b79f5) >>> 0;
    let t = Math.imul(a ^ (a >>> 15), a | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** All lengths are shares of the stage's height, horizontal places shares of its width. */
export function sceneOf(room) {
  const seed = hash(room);
  const random = seeded(seed);
  const palette = PALETTES[seed % PALETTES.length];
  const performer = PERFORMERS[Math.floor(seed / 7) % PERFORMERS.length];
  return {
    seed, palette, performer,
    stars: Array.from({ length: 90 }, () => ({ x: random(), y: random() * 0.5, size: 0.4 + random() ** 3 * 1.6, phase: random() })),
    far: skyline(random, 46, 0.1, 0.2, 0),
    near: skyline(random, 26, 0.1, 0.34, 0.5),
    crowd: crowd(random),
  };
}

/** Higher towards the edges, so that the middle stays free for the performer. */
function skyline(random, count, low, high, hollow) {
  return Array.from({ length: count }, (_, i) => {
    const x = (i + random() * 0.7 - 0.2) / count;
    const edge = Math.abs(x - 0.5) * 2;
    const share = (1 - hollow) + hollow * edge;
    return {
      x, w: (0.8 + random() * 0.9) / count,
      h: (low + random() ** 1.6 * (high - low)) * share,
      roof: ROOFS[Math.floor(random() * ROOFS.length)],
      windows: random(),
    };
  });
}

function crowd(random) {
  const people = [];
  for (const row of [0, 1, 2]) {
    const count = [30, 24, 18][row];
    for (let i = 0; i < count; i++) {
      people.push({
        row, x: (i + 0.2 + random() * 0.6) / count, size: 0.85 + random() * 0.35,
        phase: random(), arms: random(), light: Math.floor(random() * 3), hair: Math.floor(random() * 4),
      });
    }
  }
  return people;
}
