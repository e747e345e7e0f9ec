package main

import (
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"liveroom/internal/hooktest"
	"liveroom/internal/redistest"
)

// span is one as the receiver was told it.
type span struct {
	*otlp.Span
	service string
}

func (s span) attr(key string) string {
	for _, a := range s.Attributes {
		if a.Key == key {
			return a.Value.GetStringValue()
		}
	}
	return ""
}

// receiver takes traces, OTLP over HTTP.
type receiver struct {
	*httptest.Server
	t *testing.T

	mu    sync.Mutex
	spans []span // guarded by mu
	words string // all that was said, but for ids; guarded by mu
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{t: t}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.URL.Path != "/v1/traces" || req.Header.Get("Api-Key") != "one key" || req.Header.Get("Content-Type") != "application/x-protobuf" {
		r.t.Errorf("%s with %v", req.URL, req.Header)
	}
	zip, err := gzip.NewReader(req.Body)
	if err != nil {
		r.t.Error(err)
		return
	}
	body, err := io.ReadAll(zip)
	data := &otlp.TracesData{}
	if err != nil || proto.Unmarshal(body, data) != nil || len(data.ProtoReflect().GetUnknown()) > 0 {
		r.t.Errorf("no request: %v", err)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, of := range data.ResourceSpans {
		service := ""
		for _, a := range of.Resource.Attributes {
			if a.Key == "service.name" || a.Key == "service.instance.id" {
				service += a.Value.GetStringValue() + " "
			}
		}
		for _, scope := range of.ScopeSpans {
			for _, s := range scope.Spans {
				r.spans = append(r.spans, span{s, service})
				r.words += fmt.Sprintln(s.Name, s.Attributes, s.Events, s.Links, s.Status, of.Resource.Attributes)
			}
		}
	}
}

// trace waits for a trace that has all those spans, each "name < its parent's name", and returns them by name.
func (r *receiver) trace(id string, want ...string) map[string]span {
	r.t.Helper()
	var got map[string]span
	var have []string
	await(r.t, "the trace of "+strings.Join(want, ", "), func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		byID := map[string]span{}
		for _, s := range r.spans {
			byID[string(s.SpanId)] = s
		}
		got, have = map[string]span{}, nil
		for _, s := range r.spans {
			if id != "" && hex.EncodeToString(s.TraceId) != id {
				continue
			}
			if id == "" { // whichever has the first
				if s.Name != strings.Split(want[0], " < ")[0] {
					continue
				}
				id = hex.EncodeToString(s.TraceId)
			}
			parent := "nothing here"
			if p, ok := byID[string(s.ParentSpanId)]; ok && string(p.TraceId) == string(s.TraceId) {
				parent = p.Name
			}
			name := s.Name + " < " + parent
			have, got[name] = append(have, name), s
		}
		for _, w := range want {
			if !slices.Contains(have, w) {
				return false
			}
		}
		return true
	})
	return got
}

// TestAGiftIsOneTrace: from a caller's traceparent to the ledger, and over a socket from the intent to what the platform is told in the
// end, which is told the trace, too. Log lines have its id. Nothing says a text, a token or a key, and a danmaku is no span.
func TestAGiftIsOneTrace(t *testing.T) {
	t.Parallel()
	wallet := &hooktest.Wallet{Secret: walletSecret, Funds: 5}
	if err := wallet.Open(filepath.Join(t.TempDir(), "wallet")); err != nil {
		t.Fatal(err)
	}
	defer wallet.Close()
	var mu sync.Mutex
	told := map[string]string{} // traceparent by the call's id
	platform := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		kind, _, _ := strings.Cut(r.Header.Get("webhook-id"), "_")
		told[kind] = r.Header.Get("traceparent")
		mu.Unlock()
		wallet.ServeHTTP(w, r)
	}))
	defer platform.Close()
	to, dir := newReceiver(t), t.TempDir()
	s := startServer(t, dir, "-tracing-endpoint", to.URL, "-tracing-headers", "Api-Key=one%20key", "-tracing-sample", "1", "-log-slow", "1ns",
		"-redis", redistest.Start(t).URL(), "-gifts-authority", "hook", "-hooks-secrets", walletSecret, "-hooks-gift-url", platform.URL+"/hooks")
	ann := join(t, s.url, "demo", tokenFor(t, dir, "-sub", "ann"))
	service := tokenFor(t, dir, "-sub", "shop", "-role", "service")

	const caller, parent = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	header := []string{"traceparent", "00-" + caller + "-" + parent + "-01"}
	if got := s.call(t, http.MethodPost, "/rooms/demo/gifts", service, `{"user":{"id":"bob"},"id":"1","gift":"rose"}`, header...); got.status != http.StatusOK {
		t.Fatalf("a gift over the API: %v", got)
	}
	got := to.trace(caller, "POST /rooms/{room}/gifts < nothing here", "gift give < POST /rooms/{room}/gifts", "store put < gift give")
	root := got["POST /rooms/{room}/gifts < nothing here"]
	if hex.EncodeToString(root.ParentSpanId) != parent || root.Kind != otlp.Span_SPAN_KIND_SERVER || root.attr("http.route") != "/rooms/{room}/gifts" || root.attr("liveroom.room") != "demo" || root.service != "n1 liveroom " {
		t.Errorf("the call: %v of %s", root, root.service)
	}
	if put := got["store put < gift give"]; put.attr("liveroom.store") != "liveroom_gifts" || put.EndTimeUnixNano <= put.StartTimeUnixNano || put.EndTimeUnixNano > root.EndTimeUnixNano {
		t.Errorf("the ledger: %v", put)
	}
	const stranger = "5bf92f3577b34da6a3ce929d0e0e4736"
	s.call(t, http.MethodGet, "/rooms/demo", "", "", "traceparent", "00-"+stranger+"-"+parent+"-01")

	if e := ann.ask("danmaku", `,"text":"nobody's business"`); e.num("code") != http.StatusOK {
		t.Errorf("a danmaku: %v", e)
	}
	if e := ann.ask("gift", `,"gift":"rose"`); e.num("code") != http.StatusOK {
		t.Fatalf("a gift over a socket: %v", e)
	}
	to.trace("", "redis quotas < nothing here")
	paid := to.trace("", "hook gift.reserve < gift give", "gift give < nothing here", "store put < gift give", "hook gift.confirm < gift give", "store delete < gift give")
	for kind, name := range map[string]string{"gift.reserve": "hook gift.reserve < gift give", "gift.confirm": "hook gift.confirm < gift give"} {
		of := paid[name]
		mu.Lock()
		if want := "00-" + hex.EncodeToString(of.TraceId) + "-" + hex.EncodeToString(of.SpanId) + "-01"; told[kind] != want {
			t.Errorf("%s was sent traceparent %s, want %s", kind, told[kind], want)
		}
		mu.Unlock()
		if of.Kind != otlp.Span_SPAN_KIND_CLIENT || of.attr("liveroom.hook") != "hook_gift" || of.attr("liveroom.result") != "ok" {
			t.Errorf("%s: %v", kind, of)
		}
	}

	slow := map[string]bool{}
	await(t, "a line of each kind", func() bool {
		for line := range strings.Lines(s.logs.String()) {
			var l map[string]any
			if json.Unmarshal([]byte(line), &l) == nil && l["msg"] == "slow operation" {
				slow[l["kind"].(string)] = true
				if l["kind"] == "api" && l["what"] == "POST /rooms/{room}/gifts" && (l["trace_id"] != caller || l["room"] != "demo" || l["seconds"].(float64) <= 0) {
					t.Errorf("the call's line: %v", l)
				}
			}
		}
		return len(slow) == 6
	})
	if err := s.stop(); err != nil {
		t.Error(err)
	}
	to.mu.Lock()
	defer to.mu.Unlock()
	for _, secret := range []string{"business", "danmaku", service, "one key", walletSecret, "bob", "ann", platform.URL} {
		if strings.Contains(to.words, secret) {
			t.Errorf("spans tell %q", secret)
		}
	}
	for _, s := range to.spans {
		if hex.EncodeToString(s.TraceId) == stranger {
			t.Errorf("%s belongs to the trace of somebody unknown", s.Name)
		}
	}
}
