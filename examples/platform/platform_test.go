package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// server builds liveroom as it stands beside this example.
func server(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "liveserver")
	build := exec.Command("go", "build", "-C", "../..", "-trimpath", "-o", binary, "./cmd/liveserver") // as the Makefile does
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return binary
}

func open(t *testing.T) (*Wallet, *httptest.Server, string) {
	t.Helper()
	w, err := OpenWallet(filepath.Join(t.TempDir(), "wallet.db"))
	if err != nil {
		t.Fatal(err)
	}
	secret := newSecret()
	verify, err := webhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	site := httptest.NewServer(hooks(w, verify))
	t.Cleanup(func() { site.Close(); w.Close() })
	return w, site, secret
}

// TestWithLiveroom: the server's own trial of a platform finds nothing wrong, a user's gift over a socket is paid for, and what the
// ledger settles is what the wallet has taken.
func TestWithLiveroom(t *testing.T) {
	binary := server(t)
	w, site, secret := open(t)
	if err := w.TopUp(t.Context(), "hook-test", 10); err != nil {
		t.Fatal(err)
	}
	hooked := []string{"-hooks-gift-url", site.URL, "-hooks-join-url", site.URL, "-hooks-danmaku-url", site.URL, "-hooks-danmaku-timeout", "2s", "-protocol-attributes", "level", "-webhooks", "[{name: books, url: '" + site.URL + "', kinds: [gift, room]}]"}
	trial := exec.Command(binary, append([]string{"hook-test", "-pay"}, hooked...)...)
	trial.Env = []string{"LIVEROOM_HOOKS_SECRETS=" + secret}
	out, err := trial.CombinedOutput()
	if err != nil || strings.Contains(string(out), "WRONG") {
		t.Fatalf("%v\n%s", err, out)
	}
	if left, err := w.Balance(t.Context(), "hook-test", 0); err != nil || left != 9 {
		t.Errorf("a rose costs 1, and of 10 there is left: %d, %v", left, err)
	}

	o := options{authSecret: "a secret of thirty-two characters", hookSecret: secret}
	at := serve(t, binary, []string{"LIVEROOM_AUTH_SECRET=" + o.authSecret, "LIVEROOM_HOOKS_SECRETS=" + secret}, append(hooked, "-gifts-authority", "hook")...)
	settler := &Settler{Wallet: w, API: at + "/api/v1", Token: func() (string, error) { return sign(o, "settler", "Settler", "service") }}
	if _, err := w.Balance(t.Context(), "ann", 100); err != nil {
		t.Fatal(err)
	}
	for frame, want := range map[string]string{
		`{"op":"gift","id":"x","gift":"rose","count":5}`:     `"ev":"ack","id":"x","code":200`,
		`{"op":"gift","id":"x","gift":"rose","count":500}`:   `"ev":"ack","id":"x","code":402,"reason":"insufficient_funds"`,
		`{"op":"danmaku","id":"x","text":"Damn good"}`:       `"text":"**** good"`,
		`{"op":"danmaku","id":"x","text":"Buy gold here"}`:   `no advertising"`,
		`{"op":"danmaku","id":"x","text":"free coins, all"}`: `"hidden":true`,
		`{"op":"ping","id":"x"}`:                             `"attrs":{"level":1}`,
	} {
		say(t, at, o, frame, want)
	}
	for deadline := time.Now().Add(20 * time.Second); ; {
		err := settler.All(t.Context()) // "not confirmed yet" for a moment
		rooms, listed := w.list(t.Context(), `SELECT room, earned FROM settled WHERE room = 'demo'`)
		if err == nil && listed == nil && fmt.Sprint(rooms) == "[[demo 5]]" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("settled %v: %v, %v", rooms, err, listed)
		}
	}
	for deadline := time.Now().Add(20 * time.Second); ; {
		told, err := w.list(t.Context(), `SELECT kind, COUNT(*) FROM events WHERE room = 'demo' GROUP BY kind ORDER BY kind`)
		if err == nil && strings.HasPrefix(fmt.Sprint(told), "[[gift 1] [room ") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the webhook told of %v, %v", told, err)
		}
	}
	if left, err := w.Balance(t.Context(), "ann", 0); err != nil || left != 95 {
		t.Errorf("ann has %d left, %v", left, err)
	}
}

// serve runs liveroom until the test ends, and returns where it is.
func serve(t *testing.T, binary string, env []string, args ...string) string {
	t.Helper()
	live := exec.Command(binary, append([]string{"-addr", "127.0.0.1:0", "-admin-addr", "127.0.0.1:0", "-data-dir", t.TempDir(), "-drain-timeout", "100ms"}, args...)...)
	live.Env = env
	stdout, err := live.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	live.Stderr = t.Output()
	if err := live.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		live.Process.Signal(syscall.SIGTERM)
		live.Wait()
	})
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		if m := regexp.MustCompile(`^ *viewer +(\S+)/room/demo$`).FindStringSubmatch(lines.Text()); m != nil {
			go io.Copy(io.Discard, stdout)
			return m[1]
		}
	}
	t.Fatal("it printed no address")
	return ""
}

// say sends a frame as ann's page does, and reads until something that is wanted comes.
func say(t *testing.T, at string, o options, frame, want string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	token, err := sign(o, "ann", "Ann", "viewer")
	if err != nil {
		t.Fatal(err)
	}
	ws, _, err := websocket.Dial(ctx, strings.Replace(at, "http", "ws", 1)+"/ws", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.CloseNow()
	for i, frame := range []string{fmt.Sprintf(`{"op":"hello","id":"h","room":"demo","token":%q}`, token), strings.Replace(frame, `"id":"x"`, fmt.Sprintf(`"id":"%x"`, len(frame)), 1)} {
		if err := ws.Write(ctx, websocket.MessageText, []byte(frame)); err != nil {
			t.Fatalf("%d: %v", i, err)
		}
	}
	want = strings.Replace(want, `"id":"x"`, fmt.Sprintf(`"id":"%x"`, len(frame)), 1)
	var heard []string
	for {
		_, frame, err := ws.Read(ctx)
		if err != nil {
			t.Fatalf("%v instead of %s: %q", err, want, heard)
		}
		if heard = append(heard, string(frame)); strings.Contains(string(frame), want) {
			return
		}
	}
}

// TestWhatIsNotSignedIsRefused: a stranger takes nobody's money.
func TestWhatIsNotSignedIsRefused(t *testing.T) {
	w, site, secret := open(t)
	if _, err := w.Balance(t.Context(), "ann", house); err != nil {
		t.Fatal(err)
	}
	ask := func(secret string, at time.Time) int {
		body := []byte(`{"type":"gift.reserve","data":{"key":"k","attempt":1,"room":"demo","user":{"id":"ann"},"gift":"rose","count":1,"amount":5}}`)
		signer, err := webhooks.NewWebhook(secret)
		if err != nil {
			t.Fatal(err)
		}
		signature, err := signer.Sign("m1", at, body)
		if err != nil {
			t.Fatal(err)
		}
		req, _ := http.NewRequest(http.MethodPost, site.URL, bytes.NewReader(body))
		req.Header.Set("webhook-id", "m1")
		req.Header.Set("webhook-timestamp", fmt.Sprint(at.Unix()))
		req.Header.Set("webhook-signature", signature)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		return res.StatusCode
	}
	if got := ask(newSecret(), time.Now()); got != http.StatusUnauthorized {
		t.Errorf("a stranger: %d", got)
	}
	if got := ask(secret, time.Now().Add(-time.Hour)); got != http.StatusUnauthorized {
		t.Errorf("an old one: %d", got)
	}
	if left, _ := w.Balance(t.Context(), "ann", 0); left != house {
		t.Errorf("%d left", left)
	}
	if got := ask(secret, time.Now()); got != http.StatusOK {
		t.Errorf("liveroom: %d", got)
	}
	if left, _ := w.Balance(t.Context(), "ann", 0); left != house-5 {
		t.Errorf("%d left", left)
	}
}

// TestEnter: whoever comes in has an account and a token that says who it is.
func TestEnter(t *testing.T) {
	w, _, _ := open(t)
	rec := httptest.NewRecorder()
	enter(w, options{authSecret: "s", liveroom: "http://live"})(rec, httptest.NewRequest(http.MethodGet, "/enter?user=bob", nil))
	_, token, ok := strings.Cut(rec.Header().Get("Location"), "http://live/room/demo#token=")
	if !ok || strings.Count(token, ".") != 2 {
		t.Errorf("sent to %s", rec.Header().Get("Location"))
	}
	if left, err := w.Balance(context.Background(), "bob", 0); err != nil || left != house {
		t.Errorf("%d, %v", left, err)
	}
	rec = httptest.NewRecorder()
	home(w)(rec, httptest.NewRequest(http.MethodGet, "/", nil))
	if !strings.Contains(rec.Body.String(), "<td>bob<td>1000") {
		t.Errorf("home: %s", rec.Body)
	}
}
