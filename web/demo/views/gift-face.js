// How a gift looks: the demo draws those of the shipped catalogue; any other
// shows its own sign, or a box.

import { make } from "./dom.js";

const DRAWN = new Set(["rose", "tea", "lantern", "fireworks", "rocket", "whale"]);

/** An element that shows the gift `{id, icon}`. */
export function dressGift(gift) {
  const sign = gift.icon;
  if (!DRAWN.has(gift.id) && sign && [...sign].length <= 8 && !sign.includes("/")) return make("span", "sign", sign);
  const img = make("img");
  img.src = `/assets/gifts/${DRAWN.has(gift.id) ? gift.id : "box"}.svg`;
  img.alt = "";
  img.draggable = false;
  return img;
}

export function giftName(gift, language) {
  return gift.names?.[language.code] ?? gift.name ?? gift.id;
}
