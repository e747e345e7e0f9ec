package api

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"go.uber.org/goleak"

	"liveroom/internal/token"
	"liveroom/limit"
	"liveroom/protocol"
	"liveroom/room"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// loopback is a bus without a broker: what is published comes back at once, and what is stored lives as long as it does.
type loopback struct {
	feeds    map[string]room.Feed
	settings map[string][]byte
	showsMu  sync.Mutex
	shows    map[string][]byte
	revision uint64
	gifts    []protocol.StoredGift
	audit    []Audited // newest first
	held     []HeldRecord
}

func (b *loopback) Subscribe(_ context.Context, id string, f room.Feed) (room.Opening, func(), error) {
	b.feeds[id] = f
	return room.Opening{Known: true, Settings: b.settings[id], Revision: b.revision * min(1, uint64(len(b.settings[id])))}, func() {}, nil
}
func (b *loopback) Publish(c protocol.Class, id string, message []byte) error {
	b.feeds[id].Message(c, message)
	return nil
}
func (b *loopback) Late() bool { return false }
func (b *loopback) StoreGift(_ context.Context, _, _, _ string, event []byte, _ time.Duration, done func(protocol.Receipt, error)) {
	g := protocol.StoredGift{Seq: uint64(len(b.gifts) + 1), Prev: uint64(len(b.gifts)), Event: event}
	b.gifts = append(b.gifts, g)
	done(protocol.Receipt{Seq: g.Seq}, nil)
}
func (b *loopback) Gifts(_ context.Context, _ string, after uint64, limit int) ([]protocol.StoredGift, error) {
	rest := b.gifts[min(int(after), len(b.gifts)):]
	return rest[:min(limit, len(rest))], nil
}
func (b *loopback) Gift(context.Context, string, uint64) (protocol.StoredGift, error) {
	return protocol.StoredGift{}, room.ErrRefused
}
func (b *loopback) GiftsEnd(context.Context, string) (uint64, error) {
	return uint64(len(b.gifts)), nil
}

func (b *loopback) LedgerID() string { return "l1" }

func (b *loopback) Erase(context.Context, room.Erasure) error             { return nil }
func (b *loopback) ErasedUntil(string) int64                              { return 0 }
func (b *loopback) Recent(context.Context, string, int) ([][]byte, error) { return nil, nil }
func (b *loopback) Audit(_ context.Context, id string, entry []byte) (uint64, error) {
	b.audit = append([]Audited{{Seq: uint64(len(b.audit) + 1), Entry: entry}}, b.audit...)
	return uint64(len(b.audit)), nil
}
func (b *loopback) Audited(_ context.Context, id string, seq uint64) ([]byte, error) {
	for _, k := range b.audit {
		if k.Seq == seq {
			return k.Entry, nil
		}
	}
	return nil, nil
}
func (b *loopback) AuditOf(_ context.Context, id string, before uint64, limit int) (out AuditPage, err error) {
	for _, k := range b.audit {
		if (before == 0 || k.Seq < before) && len(out.Entries) < limit {
			out.Entries = append(out.Entries, k)
		}
	}
	return out, nil
}
func (b *loopback) Note(string, []byte) error { return nil }
func (b *loopback) Show(_ context.Context, id string) ([]byte, uint64, error) {
	b.showsMu.Lock()
	defer b.showsMu.Unlock()
	return b.shows[id], 0, nil
}
func (b *loopback) PutShow(_ context.Context, id string, record []byte, _ uint64) (uint64, error) {
	b.showsMu.Lock()
	defer b.showsMu.Unlock()
	b.shows[id] = record
	return 1, nil
}
func (b *loopback) AddLikes(string, int64) error { return nil }
func (b *loopback) Settings(_ context.Context, id string) ([]byte, uint64, error) {
	return b.settings[id], b.revision, nil
}
func (b *loopback) PutSettings(_ context.Context, id string, value []byte, _ uint64) (uint64, error) {
	b.settings[id] = value
	b.revision++
	return b.revision, nil
}

// PutAct has acts stored with all settings.
func (b *loopback) PutAct(context.Context, string, []byte, uint64, bool) (uint64, error) {
	return 0, room.ErrRefused
}
func (b *loopback) ActsAfter(context.Context, string, uint64) ([]protocol.StoredAct, error) {
	return nil, nil
}

func (b *loopback) PutHeld(_ context.Context, id, mid string, value []byte, last uint64, _ bool) (uint64, error) {
	b.held = append(b.held, HeldRecord{Seq: uint64(len(b.held) + 1), Value: value})
	return uint64(len(b.held)), nil
}
func (b *loopback) ReadHeld(_ context.Context, id, mid string) ([]byte, uint64, error) {
	for _, k := range b.held {
		if m, err := protocol.ParseHeld(k.Value); err == nil && m.MID == mid {
			return k.Value, k.Seq, nil
		}
	}
	return nil, 0, nil
}
func (b *loopback) HeldOf(_ context.Context, id string, after uint64, limit int) ([]HeldRecord, error) {
	return b.held[min(after, uint64(len(b.held))):], nil
}

var _ room.Bus = (*loopback)(nil)

// world is an API over rooms without a broker.
type world struct {
	t      testing.TB
	api    *API
	h      http.Handler
	tokens *token.Authority
}

func newWorld(t testing.TB, change func(*Config), of ...func(*room.Config)) *world {
	t.Helper()
	rules, err := limit.Default().Compile()
	if err != nil {
		t.Fatal(err)
	}
	gate := limit.NewGate(rules, limit.NewClock())
	b := &loopback{feeds: map[string]room.Feed{}, settings: map[string][]byte{}, shows: map[string][]byte{}}
	rooms := room.Config{Bus: b, Gate: gate, AutoCreate: true, EventTypes: []string{"poll"}, Gifts: []protocol.CatalogueGift{{ID: "rose", Name: "Rose", Price: 1}}}
	for _, f := range of {
		f(&rooms)
	}
	hub, err := room.New(rooms)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := hub.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	tokens, err := token.NewAuthority(t.Context(), token.Config{Secret: "0123456789abcdef0123456789abcdef"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	hosts := limit.NewTable[netip.Prefix](limit.ScopeIP, 100)
	cfg := Config{
		Networks: func(now limit.Instant, addr netip.Addr) ([]*limit.Subject, func(), bool) {
			e, ok := hosts.Acquire(now, limit.HostPrefix(addr))
			if !ok {
				return nil, func() {}, false
			}
			return []*limit.Subject{&e.Subject}, func() { hosts.Release(e) }, true
		},
		Hub: hub, Ledger: b, Audit: b, Held: b, Tokens: tokens, Gate: gate, Guests: true, Origins: []string{"https://live.example"},
		ClientAddr: func(r *http.Request) netip.Addr { return limit.ClientAddr(r, nil) },
	}
	if change != nil {
		change(&cfg)
	}
	a := New(cfg)
	return &world{t: t, api: a, h: a.Handler(), tokens: tokens}
}

func (w *world) token(role protocol.Role, rooms ...string) string {
	w.t.Helper()
	signed, err := w.tokens.Issue(token.Identity{User: "by-" + string(role), Role: role, Rooms: rooms}, time.Hour)
	if err != nil {
		w.t.Fatal(err)
	}
	return signed
}

// call answers one request; header is names and values by turns.
func (w *world) call(method, path, bearer, body string, header ...string) (*http.Response, map[string]any) {
	w.t.Helper()
	r := httptest.NewRequest(method, Prefix+path, strings.NewReader(body))
	if bearer != "" {
		r.Header.Set("Authorization", "Bearer "+bearer)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	rec := httptest.NewRecorder()
	w.h.ServeHTTP(rec, r)
	var out map[string]any
	if rec.Body.Len() > 0 {
		if err := json.Unmarshal(rec.Body.Bytes(), &out); err != nil {
			w.t.Fatalf("%s %s: %v in %q", method, path, err, rec.Body)
		}
	}
	return rec.Result(), out
}

// TestWhoMayDoWhat is the contract's table of roles.
func TestWhoMayDoWhat(t *testing.T) {
	w := newWorld(t, nil)
	tokens := map[string]string{
		"nobody": "", "viewer": w.token(protocol.RoleViewer), "host": w.token(protocol.RoleHost, "demo"),
		"host of another room": w.token(protocol.RoleHost, "other"), "moderator": w.token(protocol.RoleModerator, "demo"),
		"service": w.token(protocol.RoleService), "admin": w.token(protocol.RoleAdmin),
	}
	if res, body := w.call("PUT", "/rooms/demo", tokens["admin"], `{"title":"Demo"}`); res.StatusCode != 200 {
		t.Fatalf("PUT: %d %v", res.StatusCode, body)
	}
	n := 0
	fresh := func(s string) string {
		n++
		return strings.ReplaceAll(s, "#", string(rune('a'+n%26))+time.Now().Format("150405.000000"))
	}
	for _, c := range []struct {
		method, path, body string
		allowed            []string
	}{
		{"GET", "/rooms", "", []string{"nobody", "viewer", "host", "host of another room", "moderator", "service", "admin"}},
		{"GET", "/rooms/demo", "", []string{"nobody", "viewer", "host", "moderator", "service", "admin"}},
		{"PUT", "/rooms/demo", `{"closed":false}`, []string{"host", "moderator", "admin"}},
		{"POST", "/rooms/demo/danmaku", `{"user":{"id":"u#"},"id":"#","text":"hi #"}`, []string{"service", "admin"}},
		{"POST", "/rooms/demo/gifts", `{"user":{"id":"u#"},"id":"#","gift":"rose"}`, []string{"service", "admin"}},
		{"POST", "/rooms/demo/likes", `{"user":{"id":"u#"},"id":"#","count":2}`, []string{"service", "admin"}},
		{"GET", "/rooms/demo/gifts", "", []string{"service", "admin"}},
		{"GET", "/rooms/demo/people", "", []string{"host", "moderator", "service", "admin"}},
		{"POST", "/rooms/demo/events", `{"id":"#","type":"poll","data":{"n":1}}`, []string{"service", "admin"}},
		{"POST", "/broadcast", `{"id":"#","type":"poll"}`, []string{"service", "admin"}},
		{"POST", "/rooms/demo/moderate", `{"action":"mute","user":"bad#","seconds":60}`, []string{"host", "moderator", "admin"}},
		{"GET", "/rooms/demo/held", "", []string{"host", "moderator", "service", "admin"}},
		{"GET", "/rooms/demo/audit", "", []string{"host", "moderator", "service", "admin"}},
		{"GET", "/rooms/demo/sanctions", "", []string{"host", "moderator", "service", "admin"}},
		{"GET", "/rooms/demo/users/bad", "", []string{"host", "moderator", "service", "admin"}},
	} {
		for who, bearer := range tokens {
			res, body := w.call(c.method, c.path, bearer, fresh(c.body))
			want := http.StatusForbidden
			switch {
			case slices.Contains(c.allowed, who):
				want = http.StatusOK
			case bearer == "":
				want = http.StatusUnauthorized
			}
			if res.StatusCode != want {
				t.Errorf("%s %s by %s: %d %v, want %d", c.method, c.path, who, res.StatusCode, body, want)
			}
		}
	}
	if res, _ := w.call("GET", "/rooms", "not.a.token", ""); res.StatusCode != 401 || res.Header.Get("WWW-Authenticate") != "Bearer" {
		t.Errorf("a bad token: %d", res.StatusCode)
	}
	if _, seen := w.call("GET", "/rooms/demo", "", ""); seen["refusals"] != nil || seen["mutes"] != nil {
		t.Errorf("a viewer sees %v", seen)
	}
	if _, seen := w.call("GET", "/rooms/demo", tokens["host"], ""); seen["refusals"] == nil || seen["quota"] == nil || seen["title"] != "Demo" {
		t.Errorf("the host sees %v", seen)
	}
	closed := newWorld(t, func(c *Config) { c.Guests = false })
	if res, _ := closed.call("GET", "/rooms", "", ""); res.StatusCode != 401 {
		t.Errorf("without guests, nobody lists rooms: %d", res.StatusCode)
	}
}

// TestBadRequestsSayWhat: each names the field, and leaves nothing behind.
func TestBadRequestsSayWhat(t *testing.T) {
	w := newWorld(t, nil)
	service, admin := w.token(protocol.RoleService), w.token(protocol.RoleAdmin)
	for _, c := range []struct {
		method, path, bearer, body string
		status                     int
		part                       string
	}{
		{"POST", "/rooms/demo/danmaku", service, `{"user":{"id":"u"},"id":"1","text":"x","colour":"#fff"}`, 400, `"colour": allowed is a known field`},
		{"POST", "/rooms/demo/danmaku", service, `{"id":"1","text":"x"}`, 400, "user: allowed is an object"},
		{"POST", "/rooms/demo/danmaku", service, `{"user":{"id":"guest-1"},"id":"1","text":"x"}`, 400, "user.id: allowed is an id that does not begin with guest-"},
		{"POST", "/rooms/demo/danmaku", service, `{"user":{"id":"a\nb"},"id":"1","text":"x"}`, 400, "user.id: allowed is 1 to 255"},
		{"POST", "/rooms/demo/danmaku", service, `{"user":{"id":"u"},"text":"x"}`, 400, "id: allowed is 1 to 64"},
		{"POST", "/rooms/demo/danmaku", service, `{"user":{"id":"u"},"id":"1","text":"x","mode":"side"}`, 400, "mode: allowed is scroll, top or bottom"},
		{"POST", "/rooms/demo/danmaku", service, `{"user":{"id":"u"},"id":"1","text":5}`, 400, "text: allowed is a string; received number"},
		{"POST", "/rooms/demo/danmaku", service, `{"user":{"id":"u"},"id":"1","text":"x"}{}`, 400, "received more behind it"},
		{"POST", "/rooms/demo/danmaku", service, `[`, 400, "body: allowed is one JSON object"},
		{"POST", "/rooms/demo/danmaku", service, `{"text":"` + strings.Repeat("x", 17<<10) + `"}`, 400, "body: allowed is at most 16384 bytes"},
		{"POST", "/rooms/demo/gifts", service, `{"user":{"id":"u"},"id":"1","gift":"yacht"}`, 404, "gift: not in the catalogue"},
		{"POST", "/rooms/demo/likes", service, `{"user":{"id":"u"},"id":"1","count":21}`, 400, "count: allowed is 1 to 20"},
		{"POST", "/rooms/demo/likes", service, `{"user":{"id":"u"},"id":"1","count":0}`, 400, "count: allowed is 1 to 20"},
		{"POST", "/rooms/demo/gifts", service, `{"user":{"id":"u"},"id":"1","gift":"rose","count":0}`, 400, "count: allowed is 1 to 9999"},
		{"POST", "/rooms/a.b/likes", service, `{}`, 400, "room: allowed is 1 to 64"},
		{"POST", "/rooms/demo/moderate", admin, `{"action":"shout"}`, 400, "action: allowed is one of mute"},
		{"GET", "/rooms?limit=0", "", "", 400, "limit: allowed is 1 to 1000; received"},
		{"GET", "/rooms/demo/gifts?after=-1", service, "", 400, "after: allowed is 0 to"},
		{"GET", "/rooms/never-seen", "", "", 404, "room"},
		{"PUT", "/rooms/demo", admin, `{"slow_mode_ms":-1}`, 400, "slow_mode_ms: allowed is 0 to"},
		{"GET", "/nothing", "", "", 404, "route"},
		{"GET", "/rooms/demo/nothing", "", "", 404, "route"},
		{"DELETE", "/rooms/demo", admin, "", 405, "method: allowed is GET, PUT"},
	} {
		res, body := w.call(c.method, c.path, c.bearer, c.body)
		msg, _ := body["msg"].(string)
		if res.StatusCode != c.status || body["code"] != float64(c.status) || body["reason"] == nil || !strings.Contains(msg, c.part) {
			t.Errorf("%s %s %.60s: %d %v, want %d with %q", c.method, c.path, c.body, res.StatusCode, body, c.status, c.part)
		}
		if res.Header.Get(requestIDHeader) == "" {
			t.Errorf("%s %s has no request id", c.method, c.path)
		}
		if res.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s %s may be taken for a page", c.method, c.path)
		}
	}
	if _, body := w.call("GET", "/nothing", "", "", "Accept-Language", "zh-CN,zh;q=0.9"); body["msg"] != "找不到该内容：route" {
		t.Errorf("in Chinese: %v", body["msg"])
	}
	if res, _ := w.call("GET", "/rooms", "", "", requestIDHeader, "mine-1"); res.Header.Get(requestIDHeader) != "mine-1" {
		t.Errorf("the caller's request id became %q", res.Header.Get(requestIDHeader))
	}
}

func TestCORS(t *testing.T) {
	w := newWorld(t, nil)
	for origin, want := range map[string]string{"https://live.example": "https://live.example", "https://evil.example": "", "": ""} {
		res, _ := w.call("GET", "/rooms", "", "", "Origin", origin)
		if got := res.Header.Get("Access-Control-Allow-Origin"); got != want || res.Header.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("origin %q is told %q", origin, got)
		}
	}
	res, _ := w.call("OPTIONS", "/rooms/demo", "", "", "Origin", "https://live.example", "Access-Control-Request-Method", "PUT")
	if res.StatusCode != 204 || !strings.Contains(res.Header.Get("Access-Control-Allow-Headers"), "Authorization") ||
		!strings.Contains(res.Header.Get("Access-Control-Allow-Methods"), "DELETE") {
		t.Errorf("preflight: %d %v", res.StatusCode, res.Header)
	}
}

// Whom a room has appointed no token tells: such a one moderates over HTTP too, and a moderator who was dismissed does not.
func TestAppointedOverHTTP(t *testing.T) {
	w := newWorld(t, nil)
	host, viewer, moderator := w.token(protocol.RoleHost, "demo"), w.token(protocol.RoleViewer), w.token(protocol.RoleModerator, "demo")
	act := func(bearer, body string) (int, map[string]any) {
		res, answer := w.call("POST", "/rooms/demo/moderate", bearer, body)
		return res.StatusCode, answer
	}
	w.call("PUT", "/rooms/demo", host, `{"title":"Demo"}`)
	if code, body := act(host, `{"action":"appoint","user":"by-viewer","reason":"kind"}`); code != 200 || body["seq"] != 2.0 {
		t.Fatalf("%d %v", code, body)
	}
	act(host, `{"action":"dismiss","user":"by-moderator"}`)
	for bearer, want := range map[string]int{viewer: 200, moderator: 403} {
		if code, body := act(bearer, `{"action":"ban","user":"bad","seconds":60,"reason":"spam"}`); code != want {
			t.Errorf("%d %v, want %d", code, body, want)
		}
		for _, path := range []string{"/rooms/demo/audit", "/rooms/demo/sanctions?kind=ban", "/rooms/demo/users/bad"} {
			if res, body := w.call("GET", path, bearer, ""); res.StatusCode != want {
				t.Errorf("%s: %d %v, want %d", path, res.StatusCode, body, want)
			}
		}
	}
	_, who := w.call("GET", "/rooms/demo/users/bad", viewer, "")
	if acts := who["acts"].([]any); len(acts) != 1 || len(who["sanctions"].([]any)) != 1 || acts[0].(map[string]any)["by"] != "by-viewer" {
		t.Errorf("who is this: %v", who)
	}
	if _, room := w.call("GET", "/rooms/demo", viewer, ""); len(room["appointed"].([]any)) != 2 {
		t.Errorf("the room: %v", room)
	}
	if code, body := act(viewer, `{"action":"undo","seq":2}`); code != 403 { // on oneself, and a host's
		t.Errorf("%d %v", code, body)
	}
	if code, body := act(host, `{"action":"undo","seq":2}`); code != 200 {
		t.Errorf("%d %v", code, body)
	}
	if code, _ := act(viewer, `{"action":"unban","user":"bad"}`); code != 403 {
		t.Error("whose appointment was undone moderates")
	}
	for body, want := range map[string]string{
		`{"action":"mute","user":"by-host","seconds":60}`:             "yourself",
		`{"action":"mute","user":"u","seconds":2147483648}`:           "seconds: allowed is 1 to 2592000; received \"2147483648\"",
		`{"action":"ban","user":"u","seconds":-1}`:                    "seconds: allowed is 0 (for ever) to 2592000",
		`{"action":"settings"}`:                                       "settings: allowed is an object",
		`{"action":"settings","settings":{"slow_mode_ms":3600000}}`:   "settings.slow_mode_ms: allowed is 0 to 600000",
		`{"action":"settings","settings":{"speak":"nobody"}}`:         "settings.speak: allowed is one of all, members, followers, staff",
		`{"action":"settings","settings":{"speak":"followers"}}`:      "settings.speak: allowed is all, members or staff",
		`{"action":"settings","settings":{"follow_minutes":1000000}}`: "settings.follow_minutes: allowed is 0 to 525600",
		`{"action":"settings","settings":{"colour":1}}`:               "\"colour\": allowed is a known field",
		`{"action":"undo"}`:                                           "seq: allowed is the number of an entry",
		`{"action":"undo","seq":-1}`:                                  "seq: allowed is a whole number",
		`{"action":"undo","seq":999}`:                                 "no such entry",
		`{"action":"appoint","user":""}`:                              "user: allowed is",
		`{"action":"banish","user":"u"}`:                              "action: allowed is one of",
	} {
		if code, answer := act(host, body); code == 200 || !strings.Contains(answer["msg"].(string), want) {
			t.Errorf("%s: %d %v", body, code, answer["msg"])
		}
	}
	if code, body := act(host, `{"action":"ban","user":"never-seen","seconds":0}`); code != 200 {
		t.Errorf("a ban of whom nobody has seen: %d %v", code, body)
	}
}

// TestPanicIsAnAnswer: the caller gets 500, not a cut connection, and nothing of the inside.
func TestPanicIsAnAnswer(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Ledger = nil })
	res, body := w.call("GET", "/rooms/demo/gifts", w.token(protocol.RoleService), "")
	if res.StatusCode != 500 || body["reason"] != "internal" || strings.Contains(body["msg"].(string), "nil") {
		t.Errorf("got %d %v", res.StatusCode, body)
	}
}

// TestOpenAPI holds docs/openapi.yaml to the routes, and the document to its own standard.
func TestOpenAPI(t *testing.T) {
	doc, err := openapi3.NewLoader().LoadFromFile("../../docs/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context()); err != nil {
		t.Fatal(err)
	}
	var documented []string
	for path, item := range doc.Paths.Map() {
		for method := range item.Operations() {
			documented = append(documented, method+" "+path)
		}
	}
	registered := newWorld(t, nil).api.Routes()
	slices.Sort(documented)
	slices.Sort(registered)
	if !slices.Equal(documented, registered) {
		t.Errorf("documented\n  %s\nregistered\n  %s", strings.Join(documented, "\n  "), strings.Join(registered, "\n  "))
	}
	var reasons []string
	for _, r := range doc.Components.Schemas["Answer"].Value.Properties["reason"].Value.Enum {
		reasons = append(reasons, r.(string))
	}
	for _, r := range protocol.Reasons() {
		if !slices.Contains(reasons, string(r)) {
			t.Errorf("reason %s is not documented", r)
		}
	}
}
