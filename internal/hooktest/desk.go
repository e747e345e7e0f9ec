package hooktest

import (
	"encoding/json"
	"strings"
)

// admission says by a user's name as what it comes in.
func admission(user string) any {
	switch {
	case strings.HasPrefix(user, "out"):
		return map[string]any{"allow": false, "text": "members only"}
	case strings.HasPrefix(user, "mod"):
		return map[string]any{"allow": true, "role": "moderator"}
	case strings.HasPrefix(user, "quiet"):
		return map[string]any{"allow": true, "mute": 60}
	}
	return map[string]any{"allow": true, "attrs": map[string]any{"level": 7}}
}

// verdicts says by a message's first word what becomes of it.
func verdicts(body []byte) (any, error) {
	var q struct {
		Data struct {
			Messages []struct{ Text string }
		}
	}
	if err := json.Unmarshal(body, &q); err != nil {
		return nil, err
	}
	var out []map[string]string
	for _, m := range q.Data.Messages {
		v := map[string]string{"do": "allow"}
		switch word, _, _ := strings.Cut(m.Text, " "); word {
		case "replace":
			v = map[string]string{"do": "replace", "text": "***"}
		case "refuse":
			v = map[string]string{"do": "refuse", "text": "be nice"}
		case "sender_only", "hold":
			v["do"] = word
		}
		out = append(out, v)
	}
	return map[string]any{"verdicts": out}, nil
}
