// The client's public names.

export * from "./codes.js";
export { Backoff } from "./backoff.js";
export { readClose } from "./closing.js";
export { decode, encode } from "./codec.js";
export { Connection } from "./connection.js";
export { Cursor } from "./cursor.js";
export { give } from "./giving.js";
