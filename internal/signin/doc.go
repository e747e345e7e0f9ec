// Package signin lets operators sign in on the admin page at an identity provider: OpenID Connect Core 1.0, the authorization code
// with PKCE (RFC 7636).
//
// The one idea: who has signed in is a sealed cookie and nothing else. It is sealed with a key that is derived from the secret of all
// nodes, so that each of them accepts it and none keeps a list; it lives for [SessionTime], and signing out revokes it as any
// token is revoked. It counts for a request of the admin page itself and for no other ([Entrance.Signed]), and never where there is
// a token.
//
// Concurrency: an [Entrance] is safe for concurrent use. Nothing is asked of the provider before somebody signs in, so that a node
// starts, and tokens are good, while it is away; two who sign in at once ask it once.
//
// What it does not do: it decides nothing about what an operator may, beyond which role the provider's claim stands for. It asks no
// provider to end the sign-in there.
//
// Files: entrance.go (the calls), session.go (the cookies), provider.go (what is asked of the provider, and what is believed).
package signin
