package token

import (
	"errors"
	"testing"
	"time"
)

func TestWhatIsRevokedIsRefused(t *testing.T) {
	now := time.Unix(1_790_000_000, 0)
	var gone Revocations
	a, err := NewAuthority(t.Context(), Config{Secret: "0123456789abcdef0123456789abcdef", Now: func() time.Time { return now }, Revoked: &gone}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	issue := func(user, id string) string {
		signed, err := a.Issue(Identity{User: user, ID: id}, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		return signed
	}
	good := func(what, signed string, want bool) {
		t.Helper()
		if _, err := a.Verify(signed); (err == nil) != want || !want && !errors.Is(err, ErrRevoked) {
			t.Errorf("%s: %v", what, err)
		}
	}
	ann, ben, named := issue("ann", ""), issue("ben", ""), issue("cho", "j1")
	good("before", ann, true)

	gone.Add(UserName("ann"), now)
	good("a token of the user", ann, false)
	good("another user's", ben, true)
	now = now.Add(time.Second)
	good("a token issued since", issue("ann", ""), true)

	who, err := a.Verify(ben)
	if err != nil || who.ID == "" {
		t.Fatal(who, err)
	}
	gone.Add(TokenName(who.ID), now)
	good("a token by its digest", ben, false)
	good("another token of the same user", issue("ben", ""), true)
	gone.Add(TokenName("j1"), now)
	good("a token by its jti", named, false)

	guest, signed := a.NewGuest()
	good("a guest", signed, true)
	if again, err := a.Verify(signed); err != nil || again.ID != guest.ID || !again.Issued.Equal(guest.Issued) {
		t.Errorf("the guest is %+v, then %+v, %v", guest, again, err)
	}
	gone.Add(UserName(guest.User), now)
	good("a guest who was revoked", signed, false)
	gone.Add(UserName(guest.User), now.Add(-time.Hour))
	good("a guest whose older revocation came late", signed, false)
}
