// Package token verifies and signs the tokens that say who somebody is: JSON Web Tokens (RFC 7519) of the platform, and
// the guest tokens that this server hands out itself.
//
// The one idea: each key has one source and one algorithm. The secret verifies HS256 and nothing else, a key set
// verifies RS256 and ES256 and nothing else (RFC 8725, section 3.1), and guests are signed with a key of their own that
// is derived from the secret, so that no platform token can name a guest and no guest token can name a user.
//
// Concurrency: an [Authority] is safe for concurrent use.
//
// What it does not do: it keeps no list of revoked tokens and decides nothing about rooms beyond what the token says.
package token
