package consult

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"liveroom/internal/hook"
	"liveroom/internal/hooktest"
	"liveroom/protocol"
	"liveroom/room"
)

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// asked is a platform, what it was asked last, and what is told of its answers.
type asked struct {
	cfg  Config
	url  string
	body string
	log  bytes.Buffer
}

// ask puts an endpoint before a platform that answers with what answer says; "": in its own way.
func ask(t *testing.T, policy Policy, answer string, own ...http.HandlerFunc) *asked {
	t.Helper()
	a := &asked{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if err := hooktest.Verify(r.Header, body, time.Now(), secret); err != nil {
			t.Error(err)
		}
		a.body = string(body)
		if answer == "" {
			own[0](w, r)
			return
		}
		io.WriteString(w, answer)
	}))
	t.Cleanup(server.Close)
	a.url = server.URL
	key, err := hook.ParseSecret(secret)
	if err != nil {
		t.Fatal(err)
	}
	log, timeout := slog.New(slog.NewTextHandler(&a.log, nil)), 20*time.Second
	if answer == "" { // some of these end by it alone
		timeout = 500 * time.Millisecond
	}
	e, err := hook.New(hook.Config{
		Name: "h", URL: server.URL, Secrets: []hook.Secret{key}, Plain: hook.PlainLoopback, Timeout: timeout, InFlight: 1, Log: log,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	a.cfg = Config{Hook: "h", Platform: e, OnTimeout: policy, Metrics: NewMetrics(prometheus.NewRegistry(), "h", "h"), Log: log}
	return a
}

// counted is how many verdicts of a kind were counted.
func (a *asked) counted(said string) float64 {
	return testutil.ToFloat64(a.cfg.Metrics.verdicts.WithLabelValues("h", said))
}

func drafts(texts ...string) (out []*room.Draft) {
	for i, text := range texts {
		out = append(out, &room.Draft{User: protocol.User{ID: fmt.Sprint("u", i), Name: "Ann"}, Request: &protocol.Request{ID: fmt.Sprint("c", i), Text: text, Mode: protocol.ModeScroll}})
	}
	return out
}

// hostile are platforms whose answer is none, whatever they are asked.
var hostile = map[string]http.HandlerFunc{
	"a page":        func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>welcome") },
	"nothing":       func(http.ResponseWriter, *http.Request) {},
	"a redirect":    func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) },
	"ten megabytes": func(w http.ResponseWriter, _ *http.Request) { w.Write(bytes.Repeat([]byte(" "), 10<<20)) },
	"byte by byte": func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			io.WriteString(w, " ")
			w.(http.Flusher).Flush()
			select {
			case <-time.After(20 * time.Millisecond):
			case <-r.Context().Done():
			}
		}
	},
	"a refusal": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) },
	"a cut":     func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
}

// TestNoAnswerIsThePolicys: what is no answer decides nothing, of joins and of danmaku, and is told once without what was said.
func TestNoAnswerIsThePolicys(t *testing.T) {
	for name, platform := range hostile {
		t.Run(name, func(t *testing.T) {
			a := ask(t, Refuse, "", platform)
			joins := NewJoins(a.cfg, nil)
			if _, err := joins.MayJoin(t.Context(), "demo", &room.Identity{User: "ann"}); err == nil || err.Reason != protocol.ReasonUnavailable || err.RetryAfter == 0 {
				t.Errorf("refuse: %v", err)
			}
			joins.cfg.OnTimeout = Allow
			if g, err := joins.MayJoin(t.Context(), "demo", &room.Identity{User: "ann"}); err != nil || g != (room.Grant{}) {
				t.Errorf("allow: %+v, %v", g, err)
			}
			if a.counted(saidNothing) != 2 || strings.Count(a.log.String(), "a hook has given no answer") != 1 {
				t.Errorf("%v counted\n%s", a.counted(saidNothing), a.log.String())
			}
			b := ask(t, SenderOnly, "", platform)
			for i, v := range NewDanmaku(b.cfg, 100).Check("demo", drafts("hidden1", "hidden2")) {
				if !v.SenderOnly || v.Refused.Reason != protocol.ReasonRoomBusy {
					t.Errorf("%d: %+v", i, v)
				}
			}
			b.cfg.OnTimeout = Allow
			for i, v := range NewDanmaku(b.cfg, 100).Check("demo", drafts("hidden1", "hidden2")) {
				if v != (room.Verdict{}) {
					t.Errorf("%d: %+v", i, v)
				}
			}
			b.cfg.OnTimeout = Hold
			for i, v := range NewDanmaku(b.cfg, 100).Check("demo", drafts("hidden1", "hidden2")) {
				if v.Held == nil || v.Held.By != "hook" {
					t.Errorf("%d: %+v", i, v)
				}
			}
			if said := b.log.String(); b.counted(saidNothing) != 6 || !strings.Contains(said, "on_timeout=sender_only") || strings.Contains(said, "hidden") || strings.Contains(said, "welcome") {
				t.Errorf("%v counted\n%s", b.counted(saidNothing), said)
			}
		})
	}
}

// TestWhatAPlatformIsTold of joins and danmaku.
func TestWhatAPlatformIsTold(t *testing.T) {
	a := ask(t, Refuse, `{"allow":true}`)
	who := room.Identity{User: "guest-1", Name: "Guest 1", Role: protocol.RoleViewer, Attrs: `{"level":3}`}
	if g, err := NewJoins(a.cfg, nil).MayJoin(t.Context(), "demo", &who); err != nil || g != (room.Grant{}) || a.counted(saidAllow) != 1 {
		t.Errorf("%+v, %v", g, err)
	}
	want(t, a.body, "join.check", `{"room":"demo","user":{"id":"guest-1","name":"Guest 1","role":"viewer","attrs":{"level":3}},"guest":true}`)
	b := ask(t, Allow, `{"verdicts":[{"do":"allow"}]}`)
	d := drafts("嗨")
	d[0].Request.Color = "#ff0000"
	if v := NewDanmaku(b.cfg, 100).Check("demo", d); len(v) != 1 || v[0] != (room.Verdict{}) || b.counted(saidAllow) != 1 {
		t.Errorf("%+v", v)
	}
	want(t, b.body, "danmaku.check", `{"room":"demo","messages":[{"id":"c0","user":{"id":"u0","name":"Ann"},"text":"嗨","color":"#ff0000","mode":"scroll"}]}`)
}

func want(t *testing.T, body, kind, data string) {
	t.Helper()
	var got struct {
		Type string
		Data json.RawMessage
	}
	if err := json.Unmarshal([]byte(body), &got); err != nil || got.Type != kind || string(got.Data) != data {
		t.Errorf("%s: %v", body, err)
	}
}

// TestAnswersToJoins: what a hook may say of a joiner, and what is no answer since it may not.
func TestAnswersToJoins(t *testing.T) {
	ann, guest := room.Identity{User: "ann"}, room.Identity{User: "guest-1"}
	attrs := func(s protocol.Attrs) *protocol.Attrs { return &s }
	for answer, c := range map[string]struct {
		who   room.Identity
		want  room.Grant
		wrong string
	}{
		`{"allow":true,"role":"moderator","mute":60,"attrs":{"level":7,"other":[1]}}`: {who: ann, want: room.Grant{Role: "moderator", Mute: time.Minute, Attrs: attrs(`{"level":7}`)}},
		`{"allow":true,"role":"host","attrs":{},"more":1}`:                            {who: ann, want: room.Grant{Role: "host", Attrs: attrs("")}},
		`{"allow":true,"role":"viewer"}`:                                              {who: guest, want: room.Grant{Role: "viewer"}},
		`{"allow":true,"role":"admin"}`:                                               {who: ann, wrong: `\"role\" is none of viewer, moderator, host`},
		`{"allow":true,"role":"service"}`:                                             {who: ann, wrong: `\"role\" is none of`},
		`{"allow":true,"role":"host"} `:                                               {who: guest, wrong: `a guest can only be viewer`},
		`{"allow":true,"mute":-1}`:                                                    {who: ann, wrong: `\"mute\" is not 0 to 2592000 seconds`},
		`{"allow":true,"mute":2592001}`:                                               {who: ann, wrong: `\"mute\"`},
		`{"allow":true,"attrs":{"level":"\u0007hidden"}}`:                             {who: ann, wrong: `attrs.level: allowed is a printable text, a whole number, true or false`},
		`{"role":"viewer"}`:                                                           {who: ann, wrong: `want \"allow\": true or false`},
		`{"allow":"yes"}`:                                                             {who: ann, wrong: `allow can't be a string`},
	} {
		a := ask(t, Refuse, answer)
		g, err := NewJoins(a.cfg, []string{"level"}).MayJoin(t.Context(), "demo", &c.who)
		same := g.Role == c.want.Role && g.Mute == c.want.Mute && (g.Attrs == nil) == (c.want.Attrs == nil) && (g.Attrs == nil || *g.Attrs == *c.want.Attrs)
		if (err != nil) != (c.wrong != "") || !same || !strings.Contains(a.log.String(), c.wrong) || strings.Contains(a.log.String(), "hidden") {
			t.Errorf("%s: %+v, %v\n%s", answer, g, err, a.log.String())
		}
	}
	a := ask(t, Allow, `{"allow":false,"text":"members\nonly\u202e"}`)
	if _, err := NewJoins(a.cfg, nil).MayJoin(t.Context(), "demo", &ann); err == nil || err.Reason != protocol.ReasonRejected || err.Detail != "members only" || a.counted(saidRefuse) != 1 {
		t.Errorf("a no: %v", err)
	}
}

// TestAnswersToDanmaku: each message has its verdict, and one that can't be carried out is the policy's, alone.
func TestAnswersToDanmaku(t *testing.T) {
	a := ask(t, SenderOnly, `{"verdicts":[{"do":"allow"},{"do":"replace","text":" * * "},{"do":"sender_only"},{"do":"refuse","text":"no"},{"do":"refuse","reason":"muted"},
		{"do":"replace","text":"12345678901"},{"do":"replace"},{"do":"ALLOW"},{},{"do":"hold","text":"a name"}]}`)
	got := NewDanmaku(a.cfg, 10).Check("demo", drafts(strings.Split("abcdefghij", "")...))
	refused := []protocol.Reason{"", "", "", protocol.ReasonRejected, protocol.ReasonMuted, "", "", "", "", ""}
	for i, v := range got {
		reason := protocol.Reason("")
		if v.Refused != nil && !v.SenderOnly {
			reason = v.Refused.Reason
		}
		if told := v.SenderOnly && v.Refused != nil; told != (i >= 5 && i <= 8) { // it knows unless the platform wants it so
			t.Errorf("%d: told %v", i, told)
		}
		if reason != refused[i] || v.SenderOnly != slices.Contains([]int{2, 5, 6, 7, 8}, i) || (v.Text == "* *") != (i == 1) || (v.Held != nil) != (i == 9) || i == 9 && *v.Held != (room.Cause{By: "hook", Detail: "a name"}) {
			t.Errorf("%d: %+v", i, v)
		}
	}
	for said, n := range map[string]float64{saidAllow: 1, saidReplace: 1, saidSenderOnly: 1, saidHold: 1, saidRefuse: 2, saidNothing: 4} {
		if a.counted(said) != n {
			t.Errorf("%s: %v", said, a.counted(said))
		}
	}
	for _, answer := range []string{`{"verdicts":[{"do":"allow"}]}`, `{"verdicts":[{"do":"allow"},{"do":"allow"},{"do":"allow"}]}`, `{"ok":true}`, `{"verdicts":{"0":"allow"}}`} {
		b := ask(t, SenderOnly, answer)
		for _, v := range NewDanmaku(b.cfg, 10).Check("demo", drafts("a", "b")) {
			if !v.SenderOnly {
				t.Errorf("%s: %+v", answer, v)
			}
		}
	}
}

// TestAFullCallFits: 64 messages of the longest text, and as many of it in their place in the longest form of JSON.
func TestAFullCallFits(t *testing.T) {
	text := strings.Repeat("好", protocol.MaxTextBytes/len("好"))
	verdict := `{"do":"replace","text":"` + strings.Repeat(`\u597d`, protocol.MaxTextBytes/len("好")) + `"}`
	a := ask(t, SenderOnly, `{"verdicts":[`+strings.Repeat(verdict+",", room.MostDrafts-1)+verdict+`]}`)
	for _, v := range NewDanmaku(a.cfg, 500).Check("demo", drafts(slices.Repeat([]string{text}, room.MostDrafts)...)) {
		if v.Text != text {
			t.Fatalf("%.60q", v.Text)
		}
	}
}

// TestTrials find what is wrong with answers, and nothing where nothing is.
func TestTrials(t *testing.T) {
	for name, c := range map[string]struct {
		join, danmaku string
		wrong         []string
	}{
		"a good one":    {`{"allow":false,"text":"no"}`, "", nil},
		"an admin":      {`{"allow":true,"role":"admin"}`, "", []string{"join.check has a verdict"}},
		"too few":       {`{"allow":true}`, `{"verdicts":[{"do":"allow"}]}`, []string{"one of 64 long messages has as many"}},
		"another word":  {`{"allow":true}`, `{"verdicts":[{"do":"drop"}]}`, []string{"danmaku.check of a message has a verdict", "one of 64 long messages has as many"}},
		"a web page":    {"<html>", "<html>", []string{"join.check has a verdict", "danmaku.check of a message has a verdict", "one of 64 long messages has as many"}},
		"an empty text": {`{"allow":true}`, `{"verdicts":[{"do":"replace","text":" "}]}`, []string{"danmaku.check of a message has a verdict", "one of 64 long messages has as many"}},
	} {
		var wrong []string
		trial := &hook.Trial{ID: "t", Tell: func(step string, err error) {
			if err != nil {
				wrong = append(wrong, step)
			}
		}}
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var q struct {
				Type string
				Data danmakuData
			}
			body, _ := io.ReadAll(r.Body)
			if hooktest.Verify(r.Header, body, time.Now(), secret) != nil {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			json.Unmarshal(body, &q)
			switch {
			case q.Type == "ping":
				io.WriteString(w, `{"ok":true}`)
			case q.Type == TypeJoin:
				io.WriteString(w, c.join)
			case c.danmaku == "":
				v := Verdicts{Verdicts: slices.Repeat([]Verdict{{Do: "allow"}}, len(q.Data.Messages))}
				json.NewEncoder(w).Encode(v)
			default:
				io.WriteString(w, c.danmaku)
			}
		}))
		trial.Platform, trial.Forged, trial.Stale = signed(t, server.URL, secret, 0), signed(t, server.URL, "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD", 0), signed(t, server.URL, secret, -time.Hour)
		joined := TryJoin(t.Context(), trial, "ann", []string{"level"})
		good := TryDanmaku(t.Context(), trial, "ann", 100)
		if good != (len(c.wrong) == 0) || joined != !slices.Contains(c.wrong, "join.check has a verdict") || !slices.Equal(wrong, c.wrong) {
			t.Errorf("%s: %v, wrong at %q", name, good, wrong)
		}
		server.Close()
	}
}

func signed(t *testing.T, url, secret string, off time.Duration) *hook.Endpoint {
	t.Helper()
	key, err := hook.ParseSecret(secret)
	if err != nil {
		t.Fatal(err)
	}
	e, err := hook.New(hook.Config{
		Name: "h", URL: url, Secrets: []hook.Secret{key}, Plain: hook.PlainLoopback, Timeout: 20 * time.Second, InFlight: 1,
		Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return time.Now().Add(off) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// TestAStormOfJoins: beyond what may be under way and wait, a join is not asked about and goes by the policy, at once.
func TestAStormOfJoins(t *testing.T) {
	came, release := make(chan struct{}), make(chan struct{})
	a := ask(t, Refuse, "", func(w http.ResponseWriter, _ *http.Request) {
		came <- struct{}{}
		<-release
		io.WriteString(w, `{"allow":true}`)
	})
	slow := signed(t, a.url, secret, 0) // one at a time, and none waits
	joins := NewJoins(Config{Hook: "h", Platform: slow, OnTimeout: Refuse, Log: slog.New(slog.DiscardHandler)}, nil)
	first := make(chan *protocol.Error)
	go func() {
		_, err := joins.MayJoin(t.Context(), "demo", &room.Identity{User: "ann"})
		first <- err
	}()
	<-came
	for range 100 {
		if _, err := joins.MayJoin(t.Context(), "demo", &room.Identity{User: "bob"}); err == nil || err.Reason != protocol.ReasonUnavailable || err.RetryAfter < laterRetry {
			t.Fatal(err)
		}
	}
	close(release)
	if err := <-first; err != nil {
		t.Error(err)
	}
}
