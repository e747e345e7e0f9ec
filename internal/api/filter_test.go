package api

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"liveroom/internal/filter"
	"liveroom/protocol"
)

// said is what was said lately.
type said []string

func (s said) Recent(_ context.Context, room string, limit int) ([][]byte, error) {
	var out [][]byte
	for i, text := range s {
		out = append(out, protocol.AppendDanmaku(nil, protocol.Danmaku{MID: fmt.Sprint("m", i), User: protocol.User{ID: "u"}, Text: text, TS: int64(i + 1)}))
	}
	return append(out, []byte("{}")), nil
}

func (s said) RecentOfAll(ctx context.Context, limit int) ([][]byte, error) {
	return s.Recent(ctx, "", limit)
}

// raided is a room where regulars talk, and newcomers then say nearly the same.
type raided struct{ said }

func (raided) Recent(_ context.Context, room string, limit int) ([][]byte, error) {
	var out [][]byte
	say := func(user, text string, young bool) {
		ts := int64(1_000 * (len(out) + 1))
		out = append(out, protocol.AppendDanmaku(nil, protocol.Danmaku{MID: fmt.Sprint("m", len(out)), User: protocol.User{ID: user}, Text: text, TS: ts, New: young}))
	}
	for i := range 20 {
		say(fmt.Sprint("regular", i), fmt.Sprint("what number ", i*i*7919, " says"), false)
	}
	for i := range 20 {
		say(fmt.Sprint("raider", i), fmt.Sprint("join group 8812 for free coins ", i), true)
	}
	say("regular1", "join group 8812 for free coins", false)
	say("regular2", "what is going on", false)
	return append(out, []byte("{}")), nil
}

// A shield's preview tells what it would have held of the last minutes and taken back, to those who moderate the room.
func TestAShieldIsTriedOnWhatWasSaid(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Said = raided{} })
	host, viewer := w.token(protocol.RoleHost, "demo"), w.token(protocol.RoleViewer)
	if res, body := w.call("PUT", "/rooms/demo", host, `{"title":"x"}`); res.StatusCode != 200 {
		t.Fatal(body)
	}
	res, body := w.call("GET", "/rooms/demo/shield/preview", host, "")
	text := fmt.Sprint(body)
	for _, part := range []string{"looked:42", "newcomers:20", "held:13", "taken_back:8", "sample:join group 8812 for free coins 7", "map[mid:m40 text:join group 8812 for free coins ts:41000 user:map[id:regular1"} {
		if !strings.Contains(text, part) {
			t.Errorf("%d, no %s in %s", res.StatusCode, part, text)
		}
	}
	if res, body := w.call("GET", "/rooms/demo/shield/preview", viewer, ""); res.StatusCode != 403 {
		t.Errorf("a viewer: %d %v", res.StatusCode, body)
	}
}

// A list is tried on a text and on what was said before it is in force; what is wrong with it is told by its path.
func TestAListIsTriedBeforeItIsInForce(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Said = said{"hello", "you f.o.o", "bar and foo", "fine"} })
	host, admin, viewer := w.token(protocol.RoleHost, "demo"), w.token(protocol.RoleAdmin), w.token(protocol.RoleViewer)
	// A list as large as a room may have fits into a request.
	var full []string
	for i := range filter.RoomWords {
		full = append(full, fmt.Sprintf(`{"word":"word number%d","action":"sender_only"}`, i))
	}
	whole := `{"words":[` + strings.Join(full, ",") + `]}`
	const list = `{"words":[{"word":"foo","action":"replace"},{"word":"bar","action":"refuse"}]}`
	if res, body := w.call("PUT", "/rooms/demo", host, `{"filter":`+whole+`}`); res.StatusCode != 200 {
		t.Error(body)
	}
	if res, body := w.call("PUT", "/rooms/demo", host, `{"filter":{"words":[{"word":"old","action":"hold"}]}}`); res.StatusCode != 200 {
		t.Fatal(body)
	}
	for _, c := range []struct {
		path, bearer, body string
		status             int
		part               string
	}{
		{"/filter/test", host, `{"text":"O-L-D","room":"demo"}`, 200, `action:hold folded:old hits:[map[action:hold found:O-L-D word:old]] shown:O-L-D`},
		{"/filter/test", host, `{"text":"fóo old","room":"demo","filter":` + list + `}`, 200, `action:replace folded:fold hits:[map[action:replace found:fóo word:foo]] shown:*** old`},
		{"/filter/test", host, `{"text":"x","room":"demo","filter":{"words":[{"word":"","action":"hold"}]}}`, 400, "filter.words[0].word: allowed is a word"},
		{"/filter/test", host, `{"text":"","room":"demo"}`, 400, "text: "},
		{"/filter/test", host, `{"text":"x","room":"other"}`, 403, ""},
		{"/filter/test", host, `{"text":"x"}`, 400, "room: allowed is a room that you moderate"},
		{"/filter/test", viewer, `{"text":"x","room":"demo"}`, 403, ""},
		{"/filter/test", admin, `{"text":"foo","filter":` + list + `}`, 200, "action:replace folded:fo"},
		{"/filter/test", "", `{"text":"x"}`, 401, ""},
		{"/rooms/demo/filter/preview", host, list, 200, `actions:map[hold:0 refuse:1 replace:1 sender_only:0] caught:2 looked:4 newest:[map[action:refuse mid:m2 shown:bar and *** text:bar and foo ts:3`},
		{"/rooms/demo/filter/preview", viewer, list, 403, ""},
		{"/rooms/demo/filter/preview", host, `{"words":"foo"}`, 400, "words: allowed is a list"},
		{"/filter/preview", admin, list, 200, "caught:2"},
		{"/filter/preview", host, list, 403, ""},
		{"/rooms/demo/filter/preview", host, whole, 200, "caught:0"},
		{"/filter/test", host, `{"text":"word number 77","room":"demo","filter":` + whole + `}`, 200, "action:sender_only"},
		{"/filter/test", admin, `{"text":"word number 77","filter":` + strings.ReplaceAll(whole, "]", ","+strings.Join(full, ",")+strings.Repeat(" ", 80<<10)+"]") + `}`, 200, "action:sender_only"},
		{"/filter/preview", admin, `{"words":[{"word":"a.*b","action":"hold"}]}`, 400, "words[0].word: allowed is a word or a phrase as people write it, and no regular expression"},
		{"/filter/preview", admin, `{"words":[{"word":"` + strings.Repeat("x", maxFilterBytes) + `","action":"hold"}]}`, 400, "body: allowed is at most"},
	} {
		res, body := w.call("POST", c.path, c.bearer, c.body)
		if res.StatusCode != c.status || !strings.Contains(fmt.Sprint(body), c.part) {
			t.Errorf("%s %.80s: %d %v", c.path, c.body, res.StatusCode, body)
		}
	}
}
