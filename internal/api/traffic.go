package api

import (
	"encoding/json"
	"net/http"
	"time"

	"liveroom/internal/recent"
)

// traffic is the answer of GET /limits/traffic.
type traffic struct {
	At int64 `json:"at"` // when the newest step was asked for, in Unix milliseconds of this node
	recent.Traffic
}

// getTraffic tells what the limits of all nodes decided lately, and whom they refused most.
func (a *API) getTraffic(w http.ResponseWriter, r *http.Request, _ call) {
	all := []recent.Traffic{a.recent()}
	if a.nodes != nil {
		for _, answer := range a.nodes(r.Context(), AskTraffic, "") {
			var there recent.Traffic
			if err := json.Unmarshal(answer, &there); err != nil {
				a.log.Warn("another node's traffic can't be read", "err", err)
				continue
			}
			all = append(all, there)
		}
	}
	a.write(w, r, traffic{At: time.Now().UnixMilli(), Traffic: recent.Merge(all...)})
}
