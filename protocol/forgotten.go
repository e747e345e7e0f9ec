package protocol

import (
	"bytes"
	"encoding/json"
)

// Forgotten returns what is told to whoever reads a stored event of which somebody's past was erased: a message or a gift without name and
// attributes of who it is by and whom it answers, an act without the text that it quotes, or that it said. erased is until when all that a user did
// was, in Unix ms, 0: never. It is the event itself where nothing of it is to be forgotten.
func Forgotten(event []byte, erased func(user string) (until int64)) []byte {
	var e struct {
		User, Text json.RawMessage
		ReplyTo    json.RawMessage `json:"reply_to"`
		By         string          // of an act, whose User is an id alone
		TS, Time   int64           // the latter is an act's
	}
	if json.Unmarshal(event, &e) != nil {
		return event
	}
	is := func(user string) bool { return user != "" && erased(user) >= max(e.TS, e.Time, 1) }
	replace := func(field string, was, now []byte) {
		event = bytes.Replace(event, append([]byte(field), was...), append([]byte(field), now...), 1)
	}
	var whose string
	if json.Unmarshal(e.User, &whose) == nil || len(e.User) == 0 {
		if whose == "" {
			whose = e.By
		}
		if len(e.Text) > 0 && e.Time > 0 && is(whose) {
			replace(`"text":`, e.Text, []byte(`""`))
		}
		return event
	}
	for field, was := range map[string][]byte{`"user":`: e.User, `"reply_to":`: e.ReplyTo} {
		var u User
		if len(was) > 0 && json.Unmarshal(was, &u) == nil && (u.Name != "" || u.Attrs != "") && is(u.ID) {
			replace(field, was, appendUserObject(nil, User{ID: u.ID, Role: u.Role}))
		}
	}
	return event
}
