// The token a page is given in its address.

/** The value of `token` in a fragment like `#token=…`, or null. */
export function tokenInFragment(fragment) {
  return new URLSearchParams(fragment.replace(/^#/, "")).get("token") || null;
}
