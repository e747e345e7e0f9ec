package main

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"liveroom/internal/config"
	"liveroom/internal/hooktest"
)

// TestOnlyTheBackEndGives: with nothing said, a socket's gift is refused for that reason, the back end's is stored, and the log
// tells who comes from an earlier version.
func TestOnlyTheBackEndGives(t *testing.T) {
	t.Parallel()
	const told = "gifts that viewers' sockets send are refused"
	dir := t.TempDir()
	s := startUndecided(t, dir, "-config", write(t, "gifts: {catalogue: [{id: rose, name: Rose, price: 1}]}\n"))
	if !strings.Contains(s.logs.String(), told) {
		t.Errorf("not told at the start:\n%s", s.logs)
	}
	viewer := join(t, s.url, "demo", tokenFor(t, dir, "-sub", "ann"))
	if by := viewer.welcome.str("gift_authority"); by != "backend" {
		t.Errorf("welcome: gifts by %q", by)
	}
	if ack := viewer.ask("gift", `,"gift":"rose"`); ack.num("code") != http.StatusForbidden || ack.str("reason") != "gifts_by_backend" {
		t.Errorf("a socket's: %v", ack)
	}
	service := tokenFor(t, dir, "-sub", "shop", "-role", "service")
	if got := s.call(t, http.MethodPost, "/rooms/demo/gifts", service, `{"user":{"id":"ann"},"id":"1","gift":"rose"}`); got.status != http.StatusOK {
		t.Errorf("the back end's: %v", got)
	}
	viewer.wait("the gift", func(e event) bool { return e.kind() == "gift" })
	if chosen := startServer(t, "", "-gifts-authority", "backend"); strings.Contains(chosen.logs.String(), told) {
		t.Errorf("told although somebody decided:\n%s", chosen.logs)
	}
}

// startWallet runs a platform that pays for five gold's worth.
func startWallet(t *testing.T) (*hooktest.Wallet, *httptest.Server) {
	t.Helper()
	wallet := &hooktest.Wallet{Secret: walletSecret, Funds: 5}
	if err := wallet.Open(filepath.Join(t.TempDir(), "wallet")); err != nil {
		t.Fatal(err)
	}
	platform := httptest.NewServer(wallet)
	t.Cleanup(func() { platform.Close(); wallet.Close() })
	return wallet, platform
}

// TestThePlatformIsAsked: a socket's gift is stored with the platform's reference when it has taken the money, and refused in its
// words when not; a platform that is away is named, and stops nobody else.
func TestThePlatformIsAsked(t *testing.T) {
	t.Parallel()
	wallet, platform := startWallet(t)
	dir := t.TempDir()
	s := startServer(t, dir, "-gifts-authority", "hook", "-hooks-secrets", walletSecret, "-hooks-gift-url", platform.URL+"/hooks")
	ann := join(t, s.url, "demo", tokenFor(t, dir, "-sub", "ann"))
	if by := ann.welcome.str("gift_authority"); by != "hook" {
		t.Errorf("welcome: gifts by %q", by)
	}
	paid := ann.askAs("1", "gift", `,"gift":"rose","count":3`)
	if paid.num("code") != http.StatusOK {
		t.Fatalf("a gift that can be paid for: %v", paid)
	}
	ann.wait("the gift", func(e event) bool { return e.kind() == "gift" && e["paid"] == nil })
	if again := ann.askAs("1", "gift", `,"gift":"rose","count":3`); again.num("seq") != paid.num("seq") {
		t.Errorf("the same id again: %v", again)
	}
	for range 2 { // a refusal is remembered by nobody
		if poor := ann.askAs("2", "gift", `,"gift":"rose","count":3`); poor.num("code") != http.StatusPaymentRequired || poor.str("reason") != "insufficient_funds" || !strings.HasSuffix(poor.str("msg"), ": please top up") {
			t.Errorf("one that can't: %v", poor)
		}
	}
	if e := join(t, s.url, "demo", "").ask("gift", `,"gift":"rose"`); e.num("code") != http.StatusForbidden || e.str("reason") != "forbidden" {
		t.Errorf("a guest's: %v", e)
	}
	service := tokenFor(t, dir, "-sub", "shop", "-role", "service")
	if got := s.call(t, http.MethodPost, "/rooms/demo/gifts", service, `{"user":{"id":"bob"},"id":"1","gift":"rose"}`); got.status != http.StatusOK {
		t.Errorf("the back end's own: %v", got)
	}
	gifts, _ := s.call(t, http.MethodGet, "/rooms/demo/gifts", service, "").body["gifts"].([]any)
	if len(gifts) != 2 || event(gifts[0].(map[string]any)).in("paid").str("ref") == "" || gifts[1].(map[string]any)["paid"] != nil {
		t.Errorf("the ledger: %v", gifts)
	}
	await(t, "the confirmation", func() bool {
		rows, wrong := wallet.Rows()
		return len(rows) == 1 && rows[0].State == "confirmed" && int64(rows[0].Seq) == paid.num("seq") && len(wrong) == 0
	})

	platform.CloseClientConnections()
	platform.Close()
	await(t, "a platform that is known to be away", func() bool {
		if e := ann.ask("gift", `,"gift":"rose"`); e.num("code") != http.StatusServiceUnavailable || e.str("outcome") != "refused" {
			t.Errorf("without a platform: %v", e)
		}
		_, ready := s.askAdmin(t, http.MethodGet, "/readyz", "")
		return strings.Contains(ready, `"degraded":["hook_gift"]`)
	})
	if e := ann.ask("danmaku", `,"text":"still here"`); e.num("code") != http.StatusOK {
		t.Errorf("a danmaku meanwhile: %v", e)
	}
}

// TestHookTest says what is wrong with a platform's answers, and fails then.
func TestHookTest(t *testing.T) {
	t.Parallel()
	_, platform := startWallet(t)
	ask := func(args ...string) (string, error) {
		out := &lines{}
		err := run(t.Context(), append([]string{"hook-test", "-hooks-secrets", walletSecret}, args...), out, out, nil)
		return out.String(), err
	}
	all := []string{"-hooks-gift-url", platform.URL, "-hooks-join-url", platform.URL, "-hooks-danmaku-url", platform.URL, "-hooks-danmaku-timeout", "2s", "-protocol-attributes", "level", "-pay"}
	if out, err := ask(all...); err != nil || strings.Contains(out, "WRONG") || strings.Count(out, "ok     hook_gift: ") < 12 || strings.Count(out, "ok     hook_join: ") != 4 || strings.Count(out, "ok     hook_danmaku: ") != 5 {
		t.Errorf("a good platform: %v\n%s", err, out)
	}
	stranger := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("<html>")) }))
	defer stranger.Close()
	if out, err := ask("-hooks-gift-url", stranger.URL); err == nil || !strings.Contains(out, "WRONG  hook_gift: ping is answered: hook: rubbish: the body is no JSON object") {
		t.Errorf("a web page: %v\n%s", err, out)
	}
	var fault config.Fault
	if _, err := ask(); !errors.As(err, &fault) || fault.Path != "hooks.gift.url" {
		t.Errorf("without an address: %v", err)
	}
}

// TestDataOfBeforePayments: a data directory that a version without intents has written, with three gifts, is taken over: it says at
// its start what has changed, and the ledger goes on with gifts that are paid for. (What is in it ages out after 30 days.)
func TestDataOfBeforePayments(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if out, err := exec.Command("tar", "-xzf", "testdata/before-payments.tar.gz", "-C", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	old := startUndecided(t, dir)
	if !strings.Contains(old.logs.String(), "gifts that viewers' sockets send are refused, unlike in earlier versions") {
		t.Errorf("not told at the start:\n%s", old.logs)
	}
	if err := old.stop(); err != nil {
		t.Fatal(err)
	}
	_, platform := startWallet(t)
	s := startServer(t, dir, "-gifts-authority", "hook", "-hooks-secrets", walletSecret, "-hooks-gift-url", platform.URL)
	if _, ready := s.askAdmin(t, http.MethodGet, "/readyz", ""); !strings.Contains(ready, `"status":"ok"`) {
		t.Errorf("not well: %s", ready)
	}
	ann := join(t, s.url, "demo", tokenFor(t, dir, "-sub", "ann"))
	paid := ann.askAs("new1", "gift", `,"gift":"rose","count":5`)
	if paid.num("code") != http.StatusOK || paid.num("seq") <= 3 {
		t.Fatalf("a gift: %v", paid)
	}
	gifts, _ := s.call(t, http.MethodGet, "/rooms/demo/gifts", s.adminToken, "").body["gifts"].([]any)
	for i, g := range gifts {
		if last := i == len(gifts)-1; (g.(map[string]any)["paid"] != nil) != last {
			t.Errorf("gift %d of %d: %v", i+1, len(gifts), g)
		}
	}
}
