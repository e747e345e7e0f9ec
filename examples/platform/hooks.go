package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"strings"

	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// mostBody bounds what is read of a call: 64 messages and who has said them, or 200 events.
const mostBody = 256 << 10

// hooks answers liveroom: 200 and JSON when it has done what was asked, anything else when it has not; then it is asked again.
func hooks(w *Wallet, verify *webhooks.Webhook) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(rw, r.Body, mostBody))
		if err == nil {
			err = verify.Verify(body, r.Header)
		}
		if err != nil {
			http.Error(rw, "not signed by the secret that we share", http.StatusUnauthorized)
			return
		}
		var call struct {
			Type string          `json:"type"`
			Data json.RawMessage `json:"data"`
		}
		var gift Gift
		var join Join
		var said Said
		var batch Batch
		if err = json.Unmarshal(body, &call); err == nil {
			switch kind, _, _ := strings.Cut(call.Type, "."); kind {
			case "gift":
				err = json.Unmarshal(call.Data, &gift)
			case "join":
				err = json.Unmarshal(call.Data, &join)
			case "danmaku":
				err = json.Unmarshal(call.Data, &said)
			case "events":
				err = json.Unmarshal(call.Data, &batch)
			}
		}
		if err != nil {
			http.Error(rw, "no JSON", http.StatusBadRequest)
			return
		}
		var answer any = map[string]bool{"ok": true}
		switch call.Type {
		case "ping":
		case "gift.reserve":
			answer, err = w.Reserve(r.Context(), gift)
		case "gift.confirm":
			err = w.Confirm(r.Context(), gift)
		case "gift.cancel":
			err = w.Cancel(r.Context(), gift)
		case "join.check":
			answer, err = w.Admit(r.Context(), join)
		case "danmaku.check":
			answer = judge(said)
		case "events":
			err = w.Take(r.Context(), batch)
		default:
			err = fmt.Errorf("unknown type %q", call.Type)
		}
		if err != nil {
			log.Printf("%s: %v", call.Type, err)
			http.Error(rw, "try again", http.StatusInternalServerError)
			return
		}
		rw.Header().Set("Content-Type", "application/json")
		json.NewEncoder(rw).Encode(answer)
	}
}
