package protocol

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Lengths in bytes of the longest id of a room, gift, message, node or client, and of a user, whom others name.
const (
	MaxIdentifier = 64
	MaxUser       = 255
)

// GuestPrefix begins the id of every guest and of nobody else.
const GuestPrefix = "guest-"

// ValidRoom reports whether s may name a room or a gift: [A-Za-z0-9_-]{1,64}.
func ValidRoom(s string) bool { return validIdentifier(s, false) }

// ValidID reports whether s may be a client's own id: [A-Za-z0-9_.:@-]{1,64}.
func ValidID(s string) bool { return validIdentifier(s, true) }

// ValidUser reports whether s may name a user: 1 to 255 bytes of printable text, as identity providers write their sub
// (OpenID Connect Core, section 2). Printable is what Go's unicode.IsPrint says: no control or formatting character.
func ValidUser(s string) bool {
	if len(s) == 0 || len(s) > MaxUser || !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		if !unicode.IsPrint(r) || r == utf8.RuneError {
			return false
		}
	}
	return true
}

func validIdentifier(s string, wide bool) bool {
	if len(s) == 0 || len(s) > MaxIdentifier {
		return false
	}
	for i := 0; i < len(s); i++ {
		if !plain(s[i]) && !(wide && (s[i] == '.' || s[i] == ':' || s[i] == '@')) {
			return false
		}
	}
	return true
}

func plain(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

// CheckRoom returns nil for a valid room or gift id and otherwise a bad_request that names the field.
func CheckRoom(field, s string) *Error {
	if ValidRoom(s) {
		return nil
	}
	return BadField(field, "1 to 64 of A-Z a-z 0-9 _ -", s)
}

// CheckID returns nil for a valid client's id and otherwise a bad_request that names the field.
func CheckID(field, s string) *Error {
	if ValidID(s) {
		return nil
	}
	return BadField(field, "1 to 64 of A-Z a-z 0-9 _ . : @ -", s)
}

// CheckUser returns nil for a valid user and otherwise a bad_request that names the field.
func CheckUser(field, s string) *Error {
	if ValidUser(s) {
		return nil
	}
	return BadField(field, "1 to 255 bytes of printable text", s)
}

// Token escapes any identifier into one token that is safe in a NATS subject, a key-value key, a message id and a
// Redis key. Bytes other than [A-Za-z0-9_-] become "=XX", "=" among them, so that the escaping is one to one.
func Token(s string) string {
	clean := true
	for i := 0; i < len(s) && clean; i++ {
		clean = plain(s[i])
	}
	if clean {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if plain(s[i]) {
			b.WriteByte(s[i])
		} else {
			fmt.Fprintf(&b, "=%02X", s[i])
		}
	}
	return b.String()
}
