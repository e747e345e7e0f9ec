package token

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/MicahParks/jwkset"
	"github.com/golang-jwt/jwt/v5"
	"go.uber.org/goleak"

	"liveroom/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

const secret = "0123456789abcdef0123456789abcdef"

func authority(t *testing.T, c Config) *Authority {
	t.Helper()
	c.Secret = secret
	a, err := NewAuthority(t.Context(), c, quiet)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestIssueVerify(t *testing.T) {
	a := authority(t, Config{})
	signed, err := a.Issue(Identity{User: "u1", Name: "  Ada\u202e ", Role: protocol.RoleHost, Rooms: []string{"demo"}}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	i, err := a.Verify(signed)
	if err != nil || i.User != "u1" || i.Role != protocol.RoleHost || i.Guest {
		t.Fatalf("%+v %v", i, err)
	}
	if strings.ContainsRune(i.Name, '\u202e') {
		t.Errorf("name %q is not clean", i.Name)
	}
	if !i.Moderates("demo") || i.Moderates("other") || i.Speaks() || i.Allows("other") {
		t.Errorf("powers of a host: %+v", i)
	}
}

func TestRefusals(t *testing.T) {
	a := authority(t, Config{})
	now := time.Now()
	good := jwt.MapClaims{"sub": "u1", "exp": now.Add(time.Hour).Unix()}
	with := func(change jwt.MapClaims) jwt.MapClaims {
		out := jwt.MapClaims{}
		for _, m := range []jwt.MapClaims{good, change} {
			for k, v := range m {
				out[k] = v
				if v == nil {
					delete(out, k)
				}
			}
		}
		return out
	}
	for _, tc := range []struct {
		name   string
		claims jwt.MapClaims
		key    any
		method jwt.SigningMethod
		kid    string
		want   error
	}{
		{name: "good", claims: good},
		{name: "rooms as one text", claims: with(jwt.MapClaims{"role": "host", "rooms": "demo"})},
		{name: "no exp", claims: with(jwt.MapClaims{"exp": nil}), want: ErrClaims},
		{name: "expired", claims: with(jwt.MapClaims{"exp": now.Add(-time.Minute).Unix()}), want: ErrExpired},
		{name: "not yet", claims: with(jwt.MapClaims{"nbf": now.Add(time.Minute).Unix()}), want: ErrClaims},
		{name: "no sub", claims: with(jwt.MapClaims{"sub": nil}), want: ErrClaims},
		{name: "a control character in sub", claims: with(jwt.MapClaims{"sub": "a\u202eb"}), want: ErrClaims},
		{name: "a long sub", claims: with(jwt.MapClaims{"sub": strings.Repeat("x", 256)}), want: ErrClaims},
		{name: "a fraction as sub", claims: with(jwt.MapClaims{"sub": 1.5}), want: ErrClaims},
		{name: "claims in other letters", claims: with(jwt.MapClaims{"ROLE": "admin"}), want: ErrClaims},
		{name: "reserved sub", claims: with(jwt.MapClaims{"sub": "guest-1"}), want: ErrClaims},
		{name: "guest key without the prefix", claims: good, key: a.guest, kid: kidGuest, want: ErrClaims},
		{name: "guest with a role", claims: with(jwt.MapClaims{"sub": "guest-1", "role": "admin"}), key: a.guest, kid: kidGuest, want: ErrClaims},
		{name: "guest by the platform's key", claims: with(jwt.MapClaims{"sub": "guest-1"}), kid: kidGuest, want: ErrSignature},
		{name: "unknown role", claims: with(jwt.MapClaims{"role": "root"}), want: ErrClaims},
		{name: "host of no room", claims: with(jwt.MapClaims{"role": "host"}), want: ErrClaims},
		{name: "moderator of no room", claims: with(jwt.MapClaims{"role": "moderator", "rooms": []string{}}), want: ErrClaims},
		{name: "room with a space", claims: with(jwt.MapClaims{"rooms": []string{"a b"}}), want: ErrClaims},
		{name: "wrong type", claims: with(jwt.MapClaims{"rooms": 5}), want: ErrClaims},
		{name: "another key", claims: good, key: []byte("another"), want: ErrSignature},
		{name: "another algorithm of the same key", claims: good, method: jwt.SigningMethodHS512, want: ErrSignature},
		{name: "none", claims: good, method: jwt.SigningMethodNone, key: jwt.UnsafeAllowNoneSignatureType, want: ErrSignature},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.method == nil {
				tc.method = jwt.SigningMethodHS256
			}
			if tc.key == nil {
				tc.key = []byte(secret)
			}
			tok := jwt.NewWithClaims(tc.method, tc.claims)
			if tc.kid != "" {
				tok.Header["kid"] = tc.kid
			}
			signed, err := tok.SignedString(tc.key)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := a.Verify(signed); !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
		})
	}
	critical := jwt.NewWithClaims(jwt.SigningMethodHS256, good)
	critical.Header["crit"] = []string{"b64"}
	if signed, err := critical.SignedString([]byte(secret)); err != nil {
		t.Fatal(err)
	} else if _, err := a.Verify(signed); !errors.Is(err, ErrSignature) {
		t.Errorf("an extension that must be understood: %v", err)
	}
	for _, junk := range []string{"", "x", "a.b.c", strings.Repeat("a", maxTokenBytes+1)} {
		if _, err := a.Verify(junk); !errors.Is(err, ErrMalformed) {
			t.Errorf("junk of %d bytes: %v", len(junk), err)
		}
	}
}

func TestGuestKeepsItsIdentity(t *testing.T) {
	now := time.Now()
	a := authority(t, Config{Now: func() time.Time { return now }})
	first, signed := a.NewGuest()
	now = now.Add(GuestTTL - time.Hour)
	again, err := a.Verify(signed)
	if err != nil || !again.Guest || again.User != first.User || again.Name != first.Name {
		t.Fatalf("%+v %v, want %+v", again, err, first)
	}
	_, renewed := a.RenewGuest(again)
	now = now.Add(GuestTTL - time.Hour)
	if _, err := a.Verify(renewed); err != nil {
		t.Errorf("renewed: %v", err)
	}
	if _, err := a.Verify(signed); !errors.Is(err, ErrExpired) {
		t.Errorf("the first token after its time: %v", err)
	}
	if _, err := a.Issue(Identity{User: first.User}, time.Hour); !errors.Is(err, ErrClaims) {
		t.Errorf("a platform token for a guest: %v", err)
	}
}

// TestKeySet pins the algorithm to the key's source: the key set verifies RS256 and ES256, never HS256, not even with
// the public key as the secret of the classic confusion.
func TestKeySet(t *testing.T) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	ecKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(servedSet(t, map[string]any{"r": rsaKey.Public(), "e": ecKey.Public()}))
	defer srv.Close()
	a := authority(t, Config{JWKSURL: srv.URL})
	sign := func(m jwt.SigningMethod, kid string, key any) string {
		tok := jwt.NewWithClaims(m, jwt.MapClaims{"sub": "u1", "exp": time.Now().Add(time.Hour).Unix()})
		tok.Header["kid"] = kid
		signed, err := tok.SignedString(key)
		if err != nil {
			t.Fatal(err)
		}
		return signed
	}
	for name, signed := range map[string]string{
		"RS256": sign(jwt.SigningMethodRS256, "r", rsaKey),
		"ES256": sign(jwt.SigningMethodES256, "e", ecKey),
		"HS256": sign(jwt.SigningMethodHS256, "", []byte(secret)),
	} {
		if _, err := a.Verify(signed); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, signed := range map[string]string{
		"HS256 with the public key": sign(jwt.SigningMethodHS256, "r", rsaKey.N.Bytes()),
		"RS512":                     sign(jwt.SigningMethodRS512, "r", rsaKey),
		"RS256 under the EC key":    sign(jwt.SigningMethodRS256, "e", rsaKey),
	} {
		if _, err := a.Verify(signed); !errors.Is(err, ErrSignature) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := authority(t, Config{}).Verify(sign(jwt.SigningMethodRS256, "r", rsaKey)); !errors.Is(err, ErrSignature) {
		t.Errorf("RS256 without a key set: %v", err)
	}
}

func servedSet(t *testing.T, keys map[string]any) http.Handler {
	t.Helper()
	store := jwkset.NewMemoryStorage()
	for kid, key := range keys {
		jwk, err := jwkset.NewJWKFromKey(key, jwkset.JWKOptions{Metadata: jwkset.JWKMetadataOptions{KID: kid}})
		if err != nil {
			t.Fatal(err)
		}
		if err := store.KeyWrite(t.Context(), jwk); err != nil {
			t.Fatal(err)
		}
	}
	set, err := store.Marshal(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { json.NewEncoder(w).Encode(set) })
}

func TestSecretOfTheNodesReplacesTheOwnOne(t *testing.T) {
	dir := t.TempDir()
	own, err := Secret(dir)
	if err != nil {
		t.Fatal(err)
	}
	if changed, err := KeepSecret(dir, own); err != nil || changed {
		t.Errorf("its own: changed %v, %v", changed, err)
	}
	other := strings.Repeat("s", secretBytes)
	if changed, err := KeepSecret(dir, other); err != nil || !changed {
		t.Errorf("another: changed %v, %v", changed, err)
	}
	if got, err := Secret(dir); err != nil || got != other {
		t.Errorf("kept %q, %v", got, err)
	}
	info, err := os.Stat(filepath.Join(dir, SecretFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".secret-*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestSecretIsMadeOnceAndKept(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	got := make([]string, 8)
	for i := range got {
		wg.Go(func() {
			s, err := Secret(dir)
			if err != nil {
				t.Error(err)
			}
			got[i] = s
		})
	}
	wg.Wait()
	for _, s := range got {
		if s != got[0] || len(s) != 43 {
			t.Fatalf("secrets %q", got)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Fatalf("left behind: %v %v", entries, err)
	}
	info, err := entries[0].Info()
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v %v", info.Mode(), err)
	}
	if other, _ := Secret(t.TempDir()); other == got[0] {
		t.Error("two directories share a secret")
	}
	if err := os.WriteFile(filepath.Join(dir, SecretFile), []byte("short\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Secret(dir); err == nil {
		t.Error("a broken secret was accepted")
	}
}

func FuzzVerify(f *testing.F) {
	a, err := NewAuthority(f.Context(), Config{Secret: secret}, quiet)
	if err != nil {
		f.Fatal(err)
	}
	good, err := a.Issue(Identity{User: "u1", Role: protocol.RoleViewer}, time.Hour)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add("a.b.c")
	f.Add(good[:len(good)-2])
	f.Fuzz(func(t *testing.T, signed string) {
		if i, err := a.Verify(signed); err == nil && i.User != "u1" {
			t.Fatalf("forged: %+v", i)
		}
	})
}

// Attributes are taken by name; what another product means by the claim is no fault while none are configured.
func TestAttributesOfAToken(t *testing.T) {
	none, some := authority(t, Config{}), authority(t, Config{Attributes: []string{"level", "badge"}})
	for _, tc := range []struct {
		attrs any
		want  protocol.Attrs
		bad   bool
	}{
		{attrs: map[string]any{"level": 12, "badge": "金"}, want: `{"badge":"金","level":12}`},
		{attrs: map[string]any{"level": 12, "shoe": []int{44}}, want: `{"level":12}`},
		{attrs: map[string]any{}},
		{attrs: nil},
		{attrs: map[string]any{"level": 1.5}, bad: true},
		{attrs: []string{"level"}, bad: true},
		{attrs: map[string]any{"badge": strings.Repeat("x", 300)}, bad: true},
	} {
		signed, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{"sub": "u1", "exp": time.Now().Add(time.Hour).Unix(), "attrs": tc.attrs}).SignedString([]byte(secret))
		if err != nil {
			t.Fatal(err)
		}
		if who, err := some.Verify(signed); who.Attrs != tc.want || errors.Is(err, ErrClaims) != tc.bad {
			t.Errorf("%v: %q, %v", tc.attrs, who.Attrs, err)
		}
		if who, err := none.Verify(signed); err != nil || who.Attrs != "" {
			t.Errorf("%v where none are configured: %q, %v", tc.attrs, who.Attrs, err)
		}
	}
	signed, err := some.Issue(Identity{User: "u1", Role: protocol.RoleViewer, Attrs: `{"level":3}`}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if who, err := some.Verify(signed); err != nil || who.Attrs != `{"level":3}` {
		t.Errorf("issued: %q, %v", who.Attrs, err)
	}
}
