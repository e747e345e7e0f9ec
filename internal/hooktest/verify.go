// Package hooktest is the platform's side of the hooks, for tests: it checks signatures, and keeps a wallet in a file of its own.
//
// The one idea: it shares no code with what it tests, and trusts nothing that it is told.
//
// Concurrency: a [Wallet] may be asked from any goroutine; its calls go one after the other.
//
// Files: verify.go (signatures), wallet.go (money), desk.go (who comes in, what is shown).
package hooktest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Tolerance is how far the clocks of server and platform may differ, as Standard Webhooks has it.
const Tolerance = 5 * time.Minute

// Verify checks a request's signature by any of the secrets, each written whsec_….
func Verify(h http.Header, body []byte, now time.Time, secrets ...string) error {
	id, stamp := h.Get("webhook-id"), h.Get("webhook-timestamp")
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if id == "" || err != nil {
		return errors.New("no webhook-id or webhook-timestamp")
	}
	if off := now.Sub(time.Unix(seconds, 0)).Abs(); off > Tolerance {
		return fmt.Errorf("signed %v away from now", off)
	}
	for _, secret := range secrets {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
		if err != nil {
			return err
		}
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(id + "." + stamp + "."))
		mac.Write(body)
		for signature := range strings.FieldsSeq(h.Get("webhook-signature")) {
			text, v1 := strings.CutPrefix(signature, "v1,")
			got, err := base64.StdEncoding.DecodeString(text)
			if v1 && err == nil && hmac.Equal(got, mac.Sum(nil)) {
				return nil
			}
		}
	}
	return errors.New("no signature by a known secret")
}
