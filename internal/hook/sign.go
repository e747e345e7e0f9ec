package hook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Secret is a key of the Standard Webhooks scheme. It prints as nothing.
type Secret struct{ key []byte }

// secretPrefix begins a secret as people write it.
const secretPrefix = "whsec_"

// SecretForm says what [ParseSecret] takes.
const SecretForm = secretPrefix + " and the base64 of 24 to 64 random bytes"

// ParseSecret reads whsec_ and the base64 of 24 to 64 bytes. The error does not hold the secret.
func ParseSecret(s string) (Secret, error) {
	text, ok := strings.CutPrefix(s, secretPrefix)
	key, err := base64.StdEncoding.DecodeString(text)
	if !ok || err != nil || len(key) < 24 || len(key) > 64 {
		return Secret{}, fmt.Errorf("a secret is %s", SecretForm)
	}
	return Secret{key}, nil
}

// String implements fmt.Stringer, and GoString fmt.GoStringer.
func (Secret) String() string   { return secretPrefix + "…" }
func (Secret) GoString() string { return secretPrefix + "…" }

// Headers of the scheme.
const (
	headerID        = "Webhook-Id"
	headerTimestamp = "Webhook-Timestamp"
	headerSignature = "Webhook-Signature"
)

// sign adds the three headers of https://www.standardwebhooks.com: an HMAC-SHA256 over id, Unix seconds and body, once by each
// secret, so that a receiver knows one of them while they are changed.
func sign(h http.Header, secrets []Secret, id string, at time.Time, body []byte) {
	seconds := strconv.FormatInt(at.Unix(), 10)
	signatures := make([]string, len(secrets))
	for i, s := range secrets {
		mac := hmac.New(sha256.New, s.key)
		fmt.Fprintf(mac, "%s.%s.", id, seconds)
		mac.Write(body)
		signatures[i] = "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	h.Set(headerID, id)
	h.Set(headerTimestamp, seconds)
	h.Set(headerSignature, strings.Join(signatures, " "))
}
