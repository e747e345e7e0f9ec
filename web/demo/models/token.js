// What a page may know of a token it carries: nothing it must rely on, only how
// to greet. The signature is the server's business.

/** The claims of a JWT, or an empty object for what is none. */
export function readClaims(token) {
  try {
    const [, payload] = token.split(".");
    const bytes = Uint8Array.from(atob(payload.replace(/-/g, "+").replace(/_/g, "/")), (c) => c.charCodeAt(0));
    const claims = JSON.parse(new TextDecoder().decode(bytes));
    return claims !== null && typeof claims === "object" ? claims : {};
  } catch {
    return {};
  }
}

/** The value of `token` in a fragment like `#token=…`, or null. */
export function tokenInFragment(fragment) {
  return new URLSearchParams(fragment.replace(/^#/, "")).get("token") || null;
}
