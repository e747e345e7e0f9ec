package hook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"liveroom/internal/hooktest"
)

const (
	secretOld = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	secretNew = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
	hidden    = "hidden-in-the-address"
)

// world is an endpoint and what it leaves behind.
type world struct {
	*Endpoint
	log bytes.Buffer
	reg *prometheus.Registry
}

// ask makes an endpoint in front of a platform.
func ask(t *testing.T, server *httptest.Server, change ...func(*Config)) *world {
	t.Helper()
	t.Cleanup(server.Close)
	w := &world{reg: prometheus.NewRegistry()}
	cfg := Config{
		Name: "gift", URL: server.URL + "/?token=" + hidden, Secrets: []Secret{mustSecret(t, secretNew), mustSecret(t, secretOld)}, Plain: PlainLoopback,
		Timeout: 20 * time.Second, InFlight: 4, Waiting: 4, Metrics: NewMetrics(w.reg, "gift"), Log: slog.New(slog.NewTextHandler(&w.log, nil)),
	}
	for _, f := range change {
		f(&cfg)
	}
	var err error
	if w.Endpoint, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return w
}

func platform(answer http.HandlerFunc) *httptest.Server { return httptest.NewServer(answer) }

func done(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{"ok":true}`) }

func failureOf(t *testing.T, err error) *Failure {
	t.Helper()
	var f *Failure
	if !errors.As(err, &f) {
		t.Fatalf("no failure: %v", err)
	}
	return f
}

var once = Call{ID: "m1", Type: "gift.reserve", Data: map[string]int{"amount": 5}}

// TestWhatIsNoAnswer: each want of one is told by its own word, in bounded time, without the address, a secret, or what was
// received.
func TestWhatIsNoAnswer(t *testing.T) {
	const received = "what the platform said"
	drip := func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, `{"ok":`)
		for r.Context().Err() == nil {
			io.WriteString(w, " ")
			w.(http.Flusher).Flush()
			select {
			case <-time.After(20 * time.Millisecond):
			case <-r.Context().Done():
			}
		}
	}
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   Outcome
	}{
		"a page":          {func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>"+received) }, Rubbish},
		"half an object":  {func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{"ok":true,"`+received) }, Rubbish},
		"another type":    {func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{"ok":"`+received+`"}`) }, Rubbish},
		"a list":          {func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `[true]`) }, Rubbish},
		"nothing":         {func(w http.ResponseWriter, _ *http.Request) {}, Rubbish},
		"not done":        {func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{"ok":false}`) }, Rubbish},
		"an empty object": {func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{}`) }, Rubbish},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, Redirected},
		"created":       {func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(201); done(w, r) }, BadStatus},
		"an error":      {func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(500); done(w, r) }, BadStatus},
		"ten megabytes": {func(w http.ResponseWriter, _ *http.Request) { w.Write(bytes.Repeat([]byte(" "), 10<<20)) }, TooLarge},
		"a large header": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X", strings.Repeat("x", 1<<20))
			done(w, r)
		}, Unreachable},
		"a slow answer": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, TimedOut},
		"byte by byte":  {drip, TimedOut},
		"a broken answer": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "99")
			io.WriteString(w, `{"ok":true`)
		}, Unreachable},
		"a cut": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, Unreachable},
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int64
			w := ask(t, platform(func(w http.ResponseWriter, r *http.Request) {
				asked.Add(1)
				io.Copy(io.Discard, r.Body)
				c.answer(w, r)
			}), func(cfg *Config) {
				if c.want == TimedOut {
					cfg.Timeout = 500 * time.Millisecond
				}
			})
			began := time.Now()
			err := w.Call(t.Context(), once, &Done{})
			f := failureOf(t, err)
			if f.Outcome != c.want || !f.Sent {
				t.Errorf("%v, sent %v; want %s, sent", err, f.Sent, c.want)
			}
			if took := time.Since(began); took > 10*w.cfg.Timeout {
				t.Errorf("took %v", took)
			}
			if n := asked.Load(); n != 1 {
				t.Errorf("sent %d times", n)
			}
			for _, secret := range []string{hidden, received, secretNew[6:], "elsewhere"} {
				if strings.Contains(err.Error()+w.log.String(), secret) {
					t.Errorf("%s is told: %v", secret, err)
				}
			}
			if n := testutil.CollectAndCount(w.cfg.Metrics.seconds); n != len(outcomes) {
				t.Errorf("%d series, want %d", n, len(outcomes))
			}
		})
	}
}

func TestAnEndpointThatIsNotThereWasSentNothing(t *testing.T) {
	server := platform(done)
	w := ask(t, server)
	server.Close()
	for _, c := range []Call{once, {ID: "m2", Type: "gift.confirm", Repeat: true}} {
		if f := failureOf(t, w.Call(t.Context(), c, &Done{})); f.Outcome != Unreachable || f.Sent {
			t.Errorf("%v, sent %v", f, f.Sent)
		}
	}
}

// TestWhatIsSignedIsWhatIsSent, by the old secret and by the new one, and not for ever.
func TestWhatIsSignedIsWhatIsSent(t *testing.T) {
	var header http.Header
	var body []byte
	skew := time.Duration(0)
	w := ask(t, platform(func(w http.ResponseWriter, r *http.Request) {
		header = r.Header
		body, _ = io.ReadAll(r.Body)
		done(w, r)
	}), func(c *Config) { c.Now = func() time.Time { return time.Now().Add(skew) } })
	call := func() {
		t.Helper()
		if err := w.Call(t.Context(), once, &Done{}); err != nil {
			t.Fatal(err)
		}
	}
	call()
	for _, secret := range []string{secretOld, secretNew} {
		if err := hooktest.Verify(header, body, time.Now(), secret); err != nil {
			t.Errorf("by %s: %v", secret, err)
		}
	}
	if err := hooktest.Verify(header, body, time.Now(), "whsec_"+strings.Repeat("AAAA", 8)); err == nil {
		t.Error("another secret verifies it")
	}
	if err := hooktest.Verify(header, append(body, ' '), time.Now(), secretNew); err == nil {
		t.Error("another body is verified")
	}
	for skew, good := range map[time.Duration]bool{-4 * time.Minute: true, 4 * time.Minute: true, -6 * time.Minute: false, 6 * time.Minute: false} {
		if err := hooktest.Verify(header, body, time.Now().Add(skew), secretNew); (err == nil) != good {
			t.Errorf("at %v: %v", skew, err)
		}
	}
	for _, skew = range []time.Duration{-time.Hour, time.Hour} { // the server's clock is wrong
		call()
		if err := hooktest.Verify(header, body, time.Now(), secretNew); err == nil {
			t.Errorf("verified although it was signed %v from now", skew)
		}
	}
	if !bytes.Contains(body, []byte(`"type":"gift.reserve"`)) || !bytes.Contains(body, []byte(`"data":{"amount":5}`)) || header.Get("webhook-id") != "m1" {
		t.Errorf("sent %s with %v", body, header)
	}
}

// TestOnlyWhatMayBeSentAgainIs: what passes is tried again under the same id, and what the platform may have done is not, unless it
// knows the call again.
func TestOnlyWhatMayBeSentAgainIs(t *testing.T) {
	for _, status := range []int{429, 500, 502, 503, 400, 404, 307} {
		for _, repeat := range []bool{true, false} {
			var mu sync.Mutex
			ids := map[string]int{}
			w := ask(t, platform(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				ids[r.Header.Get("webhook-id")]++
				first := ids[r.Header.Get("webhook-id")] == 1
				mu.Unlock()
				if first {
					w.WriteHeader(status)
					return
				}
				done(w, r)
			}))
			c := once
			c.Repeat = repeat
			err := w.Call(t.Context(), c, &Done{})
			again := repeat && (status == 429 || status >= 500)
			if want := map[bool]int{true: 2, false: 1}[again]; ids["m1"] != want || len(ids) != 1 || (err == nil) != again {
				t.Errorf("%d, may repeat %v: sent %v, %v", status, repeat, ids, err)
			}
		}
	}
}

// TestASlowEndpointHoldsOnlySoMany: beyond what may be under way and what may wait, a call is refused at once and was not sent.
func TestASlowEndpointHoldsOnlySoMany(t *testing.T) {
	release, came := make(chan struct{}), make(chan struct{}, 100)
	w := ask(t, platform(func(w http.ResponseWriter, r *http.Request) {
		came <- struct{}{}
		<-release
		done(w, r)
	}), func(c *Config) { c.InFlight, c.Waiting = 2, 3 })
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() {
			if err := w.Call(t.Context(), once, &Done{}); err != nil {
				t.Errorf("one of the five: %v", err)
			}
		})
	}
	<-came
	<-came
	await(t, func() bool { return w.waiting.Load() == 3 })
	began := time.Now()
	if f := failureOf(t, w.Call(t.Context(), once, &Done{})); f.Outcome != Busy || f.Sent {
		t.Errorf("the sixth: %v, sent %v", f, f.Sent)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it waited %v", took)
	}
	if n := testutil.ToFloat64(w.cfg.Metrics.flying.WithLabelValues("gift")); n != 2 {
		t.Errorf("%v in flight", n)
	}
	close(release)
	all.Wait()
	if n := testutil.ToFloat64(w.cfg.Metrics.flying.WithLabelValues("gift")); n != 0 || w.waiting.Load() != 0 {
		t.Errorf("%v in flight and %d waiting at the end", n, w.waiting.Load())
	}
}

// TestAnEndpointThatIsAwayIsOnlyPinged, and is taken back by a ping.
func TestAnEndpointThatIsAwayIsOnlyPinged(t *testing.T) {
	var broken atomic.Bool
	var calls, pings atomic.Int64
	w := ask(t, platform(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if bytes.Contains(body, []byte(`"type":"ping"`)) {
			pings.Add(1)
		} else {
			calls.Add(1)
		}
		if broken.Load() {
			w.WriteHeader(500)
			return
		}
		done(w, r)
	}))
	broken.Store(true)
	for range tripAfter {
		_ = w.Call(t.Context(), once, &Done{})
	}
	if w.Err() == nil {
		t.Fatal("it is not away")
	}
	if f := failureOf(t, w.Call(t.Context(), once, &Done{})); f.Outcome != Away || f.Sent || calls.Load() != tripAfter {
		t.Errorf("%v, sent %v, %d calls", f, f.Sent, calls.Load())
	}
	ctx, cancel := context.WithCancel(t.Context())
	watched := make(chan struct{})
	go func() { defer close(watched); w.Watch(ctx) }()
	await(t, func() bool { return pings.Load() > 0 })
	if w.Err() == nil {
		t.Error("a ping that failed took it back")
	}
	broken.Store(false)
	await(t, func() bool { return w.Err() == nil })
	cancel()
	<-watched
	if err := w.Call(t.Context(), once, &Done{}); err != nil {
		t.Error(err)
	}
	if log := w.log.String(); strings.Count(log, "a hook is away") != 1 || strings.Count(log, "a hook is back") != 1 {
		t.Errorf("log:\n%s", log)
	}
}

// TestWhoeverGoesAwayBreaksNothing: calls whose asker has gone say nothing of the endpoint.
func TestWhoeverGoesAwayBreaksNothing(t *testing.T) {
	w := ask(t, platform(func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) // else net/http does not notice that the asker has gone
		<-r.Context().Done()
	}))
	for range 2 * tripAfter {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(5*time.Millisecond, cancel)
		if f := failureOf(t, w.Call(ctx, once, &Done{})); f.Outcome != Abandoned {
			t.Errorf("%v", f)
		}
	}
	if err := w.Err(); err != nil {
		t.Error(err)
	}
}

// TestConnectionsAreKept, over HTTP/2 where the endpoint speaks it.
func TestConnectionsAreKept(t *testing.T) {
	server := httptest.NewUnstartedServer(nil)
	var conns atomic.Int64
	var proto atomic.Value
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { proto.Store(r.Proto); done(w, r) })
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			conns.Add(1)
		}
	}
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.EnableHTTP2 = true
	server.StartTLS()
	w := ask(t, server, func(c *Config) {
		c.Roots = server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	})
	for range 20 {
		if err := w.Call(t.Context(), once, &Done{}); err != nil {
			t.Fatal(err)
		}
	}
	if n := conns.Load(); n != 1 || proto.Load() != "HTTP/2.0" {
		t.Errorf("%d connections, %v", n, proto.Load())
	}
	stranger := ask(t, server) // does not know the certificate
	if err := stranger.Call(t.Context(), once, &Done{}); err == nil {
		t.Error("an unknown certificate is taken")
	}
}

// TestPlainHTTPGoesNoFurtherThanItMay, whatever a name is led to.
func TestPlainHTTPGoesNoFurtherThanItMay(t *testing.T) {
	for _, c := range []struct{ url, plain, fault string }{
		{"http://127.0.0.1:9/", PlainLoopback, ""}, {"http://[::1]:9/", PlainLoopback, ""}, {"http://10.1.2.3/", PlainPrivate, ""},
		{"http://10.1.2.3/", PlainLoopback, "not loopback"}, {"http://8.8.8.8/", PlainPrivate, "not private"}, {"http://127.0.0.1/", PlainNever, "never"},
		{"https://8.8.8.8/", PlainNever, ""}, {"https://u:p@h/", PlainNever, "a user"}, {"https://h/#x", PlainNever, "fragment"}, {"h:80", PlainNever, "no URL"}, {"ftp://h/", PlainNever, "no URL"},
		{"http://name.test/", PlainLoopback, ""},
	} {
		if got := CheckURL(c.url, c.plain); c.fault == "" && got != "" || !strings.Contains(got, c.fault) {
			t.Errorf("%s with %s: %q, want %q", c.url, c.plain, got, c.fault)
		}
	}
	server := platform(done)
	w := ask(t, server, func(c *Config) {
		c.URL, c.Plain = strings.Replace(server.URL, "127.0.0.1", "localhost", 1), PlainLoopback
	})
	if err := w.Call(t.Context(), once, &Done{}); err != nil {
		t.Errorf("to localhost: %v", err)
	}
	w.cfg.Plain = PlainNever // as if the name led elsewhere
	w.Close()
	w.client.Transport = w.transport()
	if f := failureOf(t, w.Call(t.Context(), once, &Done{})); f.Sent || !strings.Contains(fmt.Sprint(f.Why), "not allowed") {
		t.Errorf("%v, sent %v", f, f.Sent)
	}
}

// patience is how long a test waits for what must come.
const patience = 30 * time.Second

func await(t *testing.T, done func() bool) {
	t.Helper()
	deadline, tick := time.After(patience), time.NewTicker(2*time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("it did not come")
		}
	}
}

// TestClocksThatDiffer: a platform that checks the time takes what was signed by a clock that is some minutes off, and what it does not
// take is a status for the log and no verdict.
func TestClocksThatDiffer(t *testing.T) {
	for off, want := range map[time.Duration]Outcome{
		0: OK, hooktest.Tolerance - time.Minute: OK, time.Minute - hooktest.Tolerance: OK, hooktest.Tolerance + time.Minute: BadStatus, -hooktest.Tolerance - time.Minute: BadStatus,
	} {
		w := ask(t, platform(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if err := hooktest.Verify(r.Header, body, time.Now(), secretNew); err != nil {
				http.Error(w, err.Error(), http.StatusUnauthorized)
				return
			}
			done(w, r)
		}), func(c *Config) { c.Now = func() time.Time { return time.Now().Add(off) } })
		if err := w.Call(t.Context(), once, &Done{}); outcomeOf(err) != want {
			t.Errorf("%v: %v", off, err)
		}
	}
}
