package token

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"time"

	"liveroom/internal/lock"
)

// What can be revoked, as a prefix of its name.
const (
	userName  = "user:"
	tokenName = "token:"
)

// UserName names all tokens of a user, for [Revocations].
func UserName(user string) string { return userName + user }

// TokenName names the token with that [Identity] ID, for [Revocations].
func TokenName(id string) string { return tokenName + id }

// digest is the ID of a token without a jti.
func digest(signed string) string {
	sum := sha256.Sum256([]byte(signed))
	return "sha256:" + base64.RawURLEncoding.EncodeToString(sum[:16])
}

// Revocations knows which tokens are not good any more although they have not expired. The zero value knows of none. It is
// safe for concurrent use.
type Revocations struct {
	mu lock.Mutex[lock.Leaf]
	at map[string]time.Time
}

// Add notes that what goes by a name was revoked, and reports whether that is news.
func (r *Revocations) Add(name string, at time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.at == nil {
		r.at = map[string]time.Time{}
	}
	news := at.After(r.at[name])
	if news {
		r.at[name] = at
	}
	return news
}

// Revoked tells whether an identity's token is not good any more: it was revoked itself, or issued before its user was. A
// token that does not say when it was issued is not judged by its user.
func (r *Revocations) Revoked(i Identity) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.at) == 0 {
		return false
	}
	if _, yes := r.at[TokenName(i.ID)]; yes {
		return true
	}
	at, yes := r.at[UserName(i.User)]
	return yes && !i.Issued.IsZero() && !i.Issued.After(at)
}

// IDOf returns the token's ID that a name stands for, and whether it stands for a token.
func IDOf(name string) (id string, ok bool) { return strings.CutPrefix(name, tokenName) }
