package api

import (
	"encoding/json"
	"time"

	"liveroom/room"
)

// rates are what viewers may know of a room's pace: admitted per second, over the last ten seconds.
type rates struct {
	Danmaku float64 `json:"danmaku"`
	Gift    float64 `json:"gift"`
	Like    float64 `json:"like"`
}

func shown(r room.Rates) rates { return rates{r.Danmaku, r.Gift, r.Like} }

// listed is a room in a list.
type listed struct {
	room.Summary
	Rates rates `json:"rates"`
}

// seen is a room as anybody sees it.
type seen struct {
	listed
	SlowModeMS int64           `json:"slow_mode_ms"`
	Pinned     json.RawMessage `json:"pinned"`
}

// detailed is a room as those see it who read or moderate it.
type detailed struct {
	room.Info
	Rates allRates `json:"rates"`
	Quota []quota  `json:"quota"`
}

// allRates adds what was not admitted.
type allRates struct {
	rates
	Degraded float64 `json:"degraded"`
	Refused  float64 `json:"refused"`
}

// quota is one of the room's buckets, with the pace at which it fills.
type quota struct {
	room.Quota
	PerSecond float64 `json:"per_second"`
}

func (a *API) detail(i room.Info) detailed {
	r := i.Rates.TenSeconds
	d := detailed{Info: i, Rates: allRates{shown(r), r.Degraded, r.Refused}, Quota: make([]quota, len(i.Quota))}
	for n, q := range i.Quota {
		d.Quota[n] = quota{q, a.perSecond(q)}
	}
	return d
}

// perSecond is how fast a bucket fills at the size of audience that its burst belongs to.
func (a *API) perSecond(q room.Quota) float64 {
	rule, ok := a.gate.Rules().Rule(q.Rule)
	if !ok {
		return 0
	}
	l := rule.Limit
	for _, tier := range rule.Tiers {
		if l = tier.Limit; l.Burst == q.Burst {
			break
		}
	}
	per := time.Duration(l.Per)
	if per == 0 {
		per = time.Second
	}
	return float64(l.Rate) / per.Seconds()
}

func (a *API) ratesOf(id string) rates {
	r, ok := a.hub.Room(id)
	if !ok {
		return rates{}
	}
	return shown(r.Rates())
}
