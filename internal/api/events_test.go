package api

import (
	"strings"
	"testing"

	"liveroom/protocol"
)

func TestEventsAreAnsweredClearly(t *testing.T) {
	w := newWorld(t, nil)
	service, ofDemo := w.token(protocol.RoleService), w.token(protocol.RoleService, "demo")
	for _, c := range []struct {
		path, bearer, body string
		status             int
		part               string // of msg
	}{
		{"/rooms/demo/events", service, `{"id":"1","type":"poll","data":{"n":1}}`, 200, ""},
		{"/rooms/demo/events", service, `{"id":"1","type":"poll","data":{ "n": 1 }}`, 200, ""}, // the same
		{"/rooms/demo/events", service, `{"id":"1","type":"poll","data":{"n":2}}`, 409, ""},
		{"/rooms/demo/events", ofDemo, `{"id":"2","type":"poll","to":"user","user":"u"}`, 200, ""},
		{"/rooms/other/events", ofDemo, `{"id":"2","type":"poll"}`, 403, ""},
		{"/broadcast", ofDemo, `{"id":"2","type":"poll"}`, 403, ""},
		{"/broadcast", service, `{"id":"2","type":"poll"}`, 200, ""},
		{"/broadcast", service, `{"id":"2","type":"poll","data":0}`, 409, ""},
		{"/rooms/demo/events", service, `{"id":"3","type":"quiz"}`, 400, `type: allowed is one of poll; received "quiz"`},
		{"/rooms/demo/events", service, `{"type":"poll"}`, 400, "id: "},
		{"/rooms/demo/events", service, `{"id":"3","type":"poll","to":"all"}`, 400, "to: allowed is room, user or hosts"},
		{"/rooms/demo/events", service, `{"id":"3","type":"poll","room":"x"}`, 400, `"room": allowed is a known field`},
		{"/rooms/demo/events", service, `{"id":"3","type":"poll","data":"` + strings.Repeat("x", 5000) + `"}`, 400, "data: allowed are 4096 bytes"},
	} {
		res, body := w.call("POST", c.path, c.bearer, c.body)
		msg, _ := body["msg"].(string)
		if res.StatusCode != c.status || !strings.Contains(msg, c.part) || c.status == 200 && body["mid"] == nil {
			t.Errorf("%s %.80s: %d %v", c.path, c.body, res.StatusCode, body)
		}
	}
}

// A back end says of a user what it likes, of the names that are configured, and gifts keep it.
func TestASpokenForUserHasAttributes(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Attributes = []string{"level"} })
	service := w.token(protocol.RoleService)
	if res, body := w.call("POST", "/rooms/demo/gifts", service, `{"user":{"id":"u","attrs":{"level":12}},"id":"1","gift":"rose"}`); res.StatusCode != 200 {
		t.Fatal(res.StatusCode, body)
	}
	_, page := w.call("GET", "/rooms/demo/gifts", service, "")
	user := page["gifts"].([]any)[0].(map[string]any)["user"].(map[string]any)
	if attrs, _ := user["attrs"].(map[string]any); attrs["level"] != 12.0 {
		t.Errorf("stored is %v", user)
	}
	for attrs, part := range map[string]string{
		`{"rank":1}`:    "user.attrs: allowed is names of protocol.attributes: level",
		`{"level":1.5}`: "user.attrs.level: allowed is a printable text",
		`7`:             "user.attrs: allowed is an object",
	} {
		res, body := w.call("POST", "/rooms/demo/danmaku", service, `{"user":{"id":"u","attrs":`+attrs+`},"id":"2","text":"hi"}`)
		if msg, _ := body["msg"].(string); res.StatusCode != 400 || !strings.Contains(msg, part) {
			t.Errorf("%s: %d %v", attrs, res.StatusCode, body)
		}
	}
}
