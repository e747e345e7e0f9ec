package hook

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestTheSignatureOfTheSpecification: the example of https://github.com/standard-webhooks/standard-webhooks, as its libraries
// test themselves with it.
func TestTheSignatureOfTheSpecification(t *testing.T) {
	secret := mustSecret(t, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	h := http.Header{}
	sign(h, []Secret{secret}, "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`))
	if got, want := h.Get("webhook-signature"), "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; got != want {
		t.Errorf("signed as %s, want %s", got, want)
	}
	if h.Get("webhook-id") != "msg_p5jXN8AQM9LWM0D4loKWxJek" || h.Get("webhook-timestamp") != "1614265330" {
		t.Errorf("headers %v", h)
	}
}

func TestASecretIsReadAndNeverPrinted(t *testing.T) {
	const key = "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	for _, bad := range []string{"", key, "whsec_", "whsec_short", "whsec_" + key[:20], "whsec_" + strings.Repeat(key, 4), "whsec_not base64, not at all!!!!!!"} {
		if _, err := ParseSecret(bad); err == nil {
			t.Errorf("%q is taken", bad)
		} else if bad != "" && bad != "whsec_" && strings.Contains(err.Error(), strings.TrimPrefix(bad, "whsec_")) {
			t.Errorf("the error repeats the secret: %v", err)
		}
	}
	s := mustSecret(t, "whsec_"+key)
	for _, shown := range []string{fmt.Sprint(s), fmt.Sprintf("%v %+v %#v %s", s, s, s, s), fmt.Sprint([]Secret{s}), fmt.Sprintf("%+v", Config{Secrets: []Secret{s}})} {
		if strings.Contains(shown, key[:8]) || strings.Contains(shown, "49 242") {
			t.Errorf("printed: %s", shown)
		}
	}
}

func mustSecret(t *testing.T, text string) Secret {
	t.Helper()
	s, err := ParseSecret(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
