package main

import (
	"context"
	"strings"
)

// Join is what a hook says of somebody who comes in.
type Join struct {
	User struct {
		ID string `json:"id"`
	} `json:"user"`
	Guest bool `json:"guest"`
}

// perLevel is what has to be given for another level.
const perLevel = 100

// Admit lets everybody in, users with the level that their gifts have brought them.
func (w *Wallet) Admit(ctx context.Context, j Join) (any, error) {
	if j.Guest {
		return map[string]any{"allow": true}, nil
	}
	var given int64
	err := w.db.QueryRowContext(ctx, `SELECT COALESCE(SUM(amount), 0) FROM gifts WHERE user = ? AND state = 'confirmed'`, j.User.ID).Scan(&given)
	return map[string]any{"allow": true, "attrs": map[string]any{"level": 1 + given/perLevel}}, err
}

// Said is what a room has said within a tick.
type Said struct {
	Messages []struct {
		Text string `json:"text"`
	} `json:"messages"`
}

// words are what a message may not hold, and what becomes of it. A real platform folds spelling before it compares.
var words = map[string]string{"damn": "replace", "buy gold": "refuse", "free coins": "sender_only"}

// judge says of each message what becomes of it.
func judge(s Said) any {
	verdicts := make([]map[string]string, len(s.Messages))
	for i, m := range s.Messages {
		verdicts[i] = map[string]string{"do": "allow"}
		for word, do := range words {
			at := strings.Index(strings.ToLower(m.Text), word)
			switch {
			case at < 0:
			case do == "replace":
				verdicts[i] = map[string]string{"do": do, "text": m.Text[:at] + "****" + m.Text[at+len(word):]}
			case do == "refuse":
				verdicts[i] = map[string]string{"do": do, "text": "no advertising"}
			default:
				verdicts[i] = map[string]string{"do": do}
			}
		}
	}
	return map[string]any{"verdicts": verdicts}
}
