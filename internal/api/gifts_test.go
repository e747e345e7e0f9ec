package api

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"liveroom/internal/catalogue"
	"liveroom/internal/edition"
	"liveroom/protocol"
)

// versions is a store of one node.
type versions struct {
	kept []edition.Record
	hear func(edition.Record)
}

func (v *versions) Publish(_ context.Context, payload []byte, after uint64) (uint64, error) {
	if after != uint64(len(v.kept)) {
		return 0, edition.ErrConflict
	}
	v.kept = append(v.kept, edition.Record{Version: after + 1, Payload: payload})
	return after + 1, nil
}

func (v *versions) History(_ context.Context, before uint64, limit int) (out []edition.Record, _ error) {
	for i := len(v.kept) - 1; i >= 0 && len(out) < limit; i-- {
		if before == 0 || v.kept[i].Version < before {
			out = append(out, v.kept[i])
		}
	}
	return out, nil
}

func (v *versions) Follow(h func(edition.Record)) (func(), error) { v.hear = h; return func() {}, nil }

func catalogueWorld(t *testing.T) *world {
	return newWorld(t, func(c *Config) {
		var err error
		c.Catalogue, err = catalogue.Open(t.Context(), edition.Config[catalogue.Edition]{Store: &versions{}, Log: slog.New(slog.DiscardHandler)},
			[]protocol.CatalogueGift{{ID: "rose", Name: "Rose", Price: 1}}, c.Hub.Offer)
		if err != nil {
			t.Fatal(err)
		}
	})
}

// TestCatalogueIsChangedAndUndone by versions, as the limits are.
func TestCatalogueIsChangedAndUndone(t *testing.T) {
	w := catalogueWorld(t)
	admin, service := w.token(protocol.RoleAdmin), w.token(protocol.RoleService)
	res, is := w.call("GET", "/gifts", "", "")
	if res.Header.Get("ETag") != `"v1"` || is["version"] != 1.0 || is["author"] != nil {
		t.Fatalf("%v %v", res.Header, is)
	}
	if res, _ := w.call("GET", "/gifts", "", "", "If-None-Match", `"v1"`); res.StatusCode != 304 {
		t.Errorf("the same again: %d", res.StatusCode)
	}
	is["gifts"] = append(is["gifts"].([]any), map[string]any{"id": "tea", "name": "Tea", "names": map[string]string{"zh": "热茶"}, "price": 5})
	sent, _ := json.Marshal(is)
	for who, bearer := range map[string]string{"": "", "service": service, "host": w.token(protocol.RoleHost, "demo")} {
		if res, _ := w.call("PUT", "/gifts", bearer, string(sent), "If-Match", `"v1"`); res.StatusCode != 403 && res.StatusCode != 401 {
			t.Errorf("%q changes it: %d", who, res.StatusCode)
		}
	}
	if res, _ := w.call("POST", "/rooms/demo/gifts", service, `{"user":{"id":"u"},"id":"1","gift":"tea"}`); res.StatusCode != 404 {
		t.Errorf("not there yet: %d", res.StatusCode)
	}
	res, set := w.call("PUT", "/gifts?note=tea+time", admin, string(sent), "If-Match", `"v1"`)
	if res.StatusCode != 200 || res.Header.Get("ETag") != `"v2"` || set["author"] != "by-admin" {
		t.Fatalf("%d %v", res.StatusCode, set)
	}
	if res, _ := w.call("POST", "/rooms/demo/gifts", service, `{"user":{"id":"u"},"id":"2","gift":"tea"}`); res.StatusCode != 200 {
		t.Errorf("the new gift: %d", res.StatusCode)
	}
	if res, body := w.call("PUT", "/gifts", admin, string(sent), "If-Match", `"v1"`); res.StatusCode != 412 || !strings.HasPrefix(body["msg"].(string), "The catalogue stays as it is: changed meanwhile") {
		t.Errorf("on an old version: %d %v", res.StatusCode, body)
	}
	_, history := w.call("GET", "/gifts/versions", service, "")
	newest := history["versions"].([]any)[0].(map[string]any)
	if changes := newest["changes"].([]any); newest["note"] != "tea time" || len(changes) != 1 || changes[0].(map[string]any)["gift"] != "tea" {
		t.Errorf("history: %v", history)
	}
	if res, body := w.call("POST", "/gifts/rollback", admin, `{"version":1}`, "If-Match", `"v2"`); res.StatusCode != 200 || body["restores"] != 1.0 {
		t.Errorf("rollback: %d %v", res.StatusCode, body)
	}
	if res, _ := w.call("POST", "/rooms/demo/gifts", service, `{"user":{"id":"u"},"id":"3","gift":"tea"}`); res.StatusCode != 404 {
		t.Errorf("taken away: %d", res.StatusCode)
	}
	if res, _ := w.call("POST", "/gifts/rollback", admin, `{"version":9}`); res.StatusCode != 404 {
		t.Errorf("an unknown version: %d", res.StatusCode)
	}
}

// TestBadCatalogues are refused whole, with every fault by its path.
func TestBadCatalogues(t *testing.T) {
	w := catalogueWorld(t)
	admin := w.token(protocol.RoleAdmin)
	many := strings.Repeat(`{"id":"a","name":"A","price":1},`, protocol.MaxGifts+1)
	var wide []string
	for i := range protocol.MaxGifts {
		wide = append(wide, fmt.Sprintf(`{"id":"g%d","name":"%s","price":1,"icon":"%s"}`, i, strings.Repeat("礼", 32), strings.Repeat("i", 200)))
	}
	for _, c := range []struct {
		body  string
		parts []string
	}{
		{`{}`, []string{"gifts: allowed is a list of gifts"}},
		{`{"gifts":[],"rules":[]}`, []string{`"rules": allowed is a known field`}},
		{`{"gifts":[{"id":"a","name":"A","price":1,"prise":2}]}`, []string{`"prise"`}},
		{`{"gifts":[{"id":"a b","name":"","price":0},{"id":"x","name":"X","price":1},{"id":"x","name":"X","names":{"fr":"Y"},"price":100000000001}]}`,
			[]string{"gifts[0].id", "gifts[0].name", "gifts[0].price", "gifts[2].id", "gifts[2].names", "gifts[2].price"}},
		{`{"gifts":[{"id":"a","name":"A","price":1,"icon":"\u0007"}]}`, []string{"gifts[0].icon"}},
		{`{"gifts":[` + strings.TrimSuffix(many, ",") + `]}`, []string{"at most 500 gifts"}},
		{`{"gifts":[` + strings.Join(wide, ",") + `]}`, []string{"at most 65536 bytes"}},
		{`{"gifts":[{"id":"` + strings.Repeat("a", 300<<10) + `"}]}`, []string{"body: allowed is at most 262144 bytes"}},
	} {
		res, body := w.call("PUT", "/gifts", admin, c.body, "If-Match", `"v1"`)
		said := fmt.Sprint(body["msg"], body["faults"])
		for _, part := range c.parts {
			if res.StatusCode != 400 || !strings.Contains(said, part) {
				t.Errorf("%.80s: %d %.300s, want 400 with %s", c.body, res.StatusCode, said, part)
			}
		}
	}
	if res, _ := w.call("PUT", "/gifts", admin, `{"gifts":[]}`); res.StatusCode != 428 {
		t.Errorf("without If-Match: %d", res.StatusCode)
	}
	if _, is := w.call("GET", "/gifts", "", ""); is["version"] != 1.0 {
		t.Errorf("something changed: %v", is)
	}
}
