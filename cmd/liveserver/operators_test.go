package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"liveroom/internal/node"
)

// ask sends a request to the operators' listener and returns the status.
func (s *server) askAdmin(t *testing.T, method, path, bearer string, header ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.admin+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if bearer != "" {
		req.Header.Set("Authorization", "Bearer "+bearer)
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			req.Host = header[i+1]
		}
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

func TestTheOperatorsPortGivesNothingAway(t *testing.T) {
	t.Parallel()
	const secret = "a-secret-that-nobody-may-see-1234"
	s := startServer(t, "", "-auth-secret", secret)
	for _, path := range []string{"/debug/pprof/cmdline", "/debug/pprof/", "/debug/pprof/goroutine?debug=2", "/metrics", "/readyz", "/"} {
		if status, _ := s.askAdmin(t, http.MethodGet, path, "", "Host", "evil.test"); status != http.StatusForbidden {
			t.Errorf("%s with a foreign Host: %d", path, status)
		}
		if status, body := s.askAdmin(t, http.MethodGet, path, ""); strings.Contains(body, secret) || (status == http.StatusOK) == strings.Contains(path, "cmdline") {
			t.Errorf("%s: %d, shows the secret: %v", path, status, strings.Contains(body, secret))
		}
	}
	for name, tc := range map[string]struct {
		bearer string
		header []string
		want   int
	}{
		"nobody":       {"", nil, http.StatusUnauthorized},
		"a host":       {s.hostToken, nil, http.StatusForbidden},
		"another site": {s.adminToken, []string{"Origin", "https://evil.test"}, http.StatusForbidden},
		"an admin":     {s.adminToken, nil, http.StatusOK},
	} {
		if status, body := s.askAdmin(t, http.MethodPost, "/debug/free", tc.bearer, tc.header...); status != tc.want {
			t.Errorf("POST /debug/free by %s: %d %s", name, status, body)
		}
	}
}

func TestAPageBehindAProxyThatRewritesHost(t *testing.T) {
	t.Parallel()
	dial := func(s *server, origin string) (int, error) {
		ws, res, err := websocket.Dial(t.Context(), strings.Replace(s.url, "http", "ws", 1)+"/ws", &websocket.DialOptions{HTTPHeader: http.Header{"Origin": {origin}}})
		if err == nil {
			ws.CloseNow()
		}
		if res == nil {
			return 0, err
		}
		return res.StatusCode, err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	host := ln.Addr().String()
	ln.Close()
	s := startServer(t, "", "-public-url", "https://live.test/", "-addr", host)
	s.url = "http://" + host
	if status, err := dial(s, "https://live.test"); status != http.StatusSwitchingProtocols {
		t.Errorf("the origin of public_url: %d %v", status, err)
	}
	for range 3 {
		if status, _ := dial(s, "https://other.test"); status != http.StatusForbidden {
			t.Errorf("another origin: %d", status)
		}
	}
	if log := s.logs.String(); strings.Count(log, "origin is not the host") != 1 || !strings.Contains(log, `"origin":"https://other.test"`) || !strings.Contains(log, fmt.Sprintf(`"host":%q`, host)) {
		t.Errorf("one line with both hosts is wanted:\n%s", log)
	}
	if _, body := s.askAdmin(t, http.MethodGet, "/metrics", ""); !strings.Contains(body, `liveroom_upgrades_total{result="origin"} 3`) {
		t.Error("the metric does not tell")
	}
}

func TestWhatIsWrongWithTheCommandLineIsASentence(t *testing.T) {
	t.Parallel()
	empty := t.TempDir()
	for want, args := range map[string][]string{
		"there is no flag -adr, perhaps -addr was meant":                   {"-adr", ":1"},
		"there is no flag -rooms.max, perhaps -rooms-max was meant":        {"-rooms.max", "1"},
		"the flag -addr needs a value behind it":                           {"-addr"},
		`there is no command "start": it is serve, token, check, health, `: {"start"},
		`the flag -ttl can't be "soon"`:                                    {"token", "-ttl", "soon"},
		"there is no secret in " + empty + " to sign with: run this wher":  {"token", "-data-dir", empty},
	} {
		out, errs := &lines{}, &lines{}
		err := run(t.Context(), args, out, errs, nil)
		if err == nil || !strings.Contains(err.Error(), want) || report(errs, err) != exitConfig {
			t.Errorf("%q: %v, want %q", args, err, want)
		}
	}
	for _, flag := range []string{"-version", "--version", "version"} {
		out := &lines{}
		if err := run(t.Context(), []string{flag}, out, out, nil); err != nil || !strings.HasPrefix(out.String(), node.Version()+"\n") {
			t.Errorf("%s: %q, %v", flag, out, err)
		}
	}
}
