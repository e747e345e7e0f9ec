package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"

	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// mostBody bounds what is read of a call.
const mostBody = 64 << 10

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
			Type string `json:"type"`
			Data Gift   `json:"data"`
		}
		if err := json.Unmarshal(body, &call); err != nil {
			http.Error(rw, "no JSON", http.StatusBadRequest)
			return
		}
		var answer any = map[string]bool{"ok": true}
		switch call.Type {
		case "ping":
		case "gift.reserve":
			answer, err = w.Reserve(r.Context(), call.Data)
		case "gift.confirm":
			err = w.Confirm(r.Context(), call.Data)
		case "gift.cancel":
			err = w.Cancel(r.Context(), call.Data)
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
