package payment

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"liveroom/internal/hook"
	"liveroom/internal/hooktest"
	"liveroom/protocol"
)

// tried returns the steps of a trial at which something is wrong.
func tried(t *testing.T, platform http.HandlerFunc) (wrong []string) {
	t.Helper()
	server := httptest.NewServer(platform)
	defer server.Close()
	signed := func(secret string, off time.Duration) Platform {
		key, err := hook.ParseSecret(secret)
		if err != nil {
			t.Fatal(err)
		}
		e, err := hook.New(hook.Config{
			Name: "gift", URL: server.URL, Secrets: []hook.Secret{key}, Plain: hook.PlainLoopback, Timeout: 5 * time.Second, InFlight: 1,
			Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return time.Now().Add(off) },
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(e.Close)
		return e
	}
	trial := Trial{User: "ann", Gift: protocol.CatalogueGift{ID: "rose", Price: 1}, Attempt: 100, Pay: true, Trial: &hook.Trial{
		Platform: signed(secret, 0), Forged: signed("whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD", 0), Stale: signed(secret, -time.Hour), ID: "t1",
		Tell: func(step string, fault error) {
			if fault != nil {
				wrong = append(wrong, step)
			}
		},
	}}
	if good := trial.Run(context.Background()); good != (len(wrong) == 0) {
		t.Errorf("good %v, wrong %q", good, wrong)
	}
	return wrong
}

// TestATrialFindsWhatIsWrong, and finds nothing where nothing is.
func TestATrialFindsWhatIsWrong(t *testing.T) {
	wallet := func() *hooktest.Wallet {
		w := &hooktest.Wallet{Secret: secret, Funds: 5}
		if err := w.Open(filepath.Join(t.TempDir(), "wallet")); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { w.Close() })
		return w
	}
	if wrong := tried(t, wallet().ServeHTTP); len(wrong) > 0 {
		t.Errorf("a good one: %q", wrong)
	}
	poor := wallet()
	poor.Funds = 0
	yes := func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, `{"ok":true,"allow":true}`) }
	for name, c := range map[string]struct {
		platform http.HandlerFunc
		want     []string
	}{
		"says nothing": {func(http.ResponseWriter, *http.Request) {}, []string{"ping is answered"}},
		"says yes to all": {yes, []string{
			"what an unknown secret signed is refused", "what was signed an hour ago is refused", "a reserve that comes after its cancel is refused",
			"and its reserve, which comes late, is refused", "a further reserve is told that the key is paid for",
		}},
		"is poor": {poor.ServeHTTP, []string{"gift.reserve of ann is allowed"}},
	} {
		if wrong := tried(t, c.platform); !slices.Equal(wrong, c.want) {
			t.Errorf("%s: wrong at %s", name, strings.Join(wrong, "; "))
		}
	}
}
