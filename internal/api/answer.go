package api

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"liveroom/limit"
	"liveroom/protocol"
)

// lang is the language of an answer's msg.
func lang(r *http.Request) protocol.Lang { return protocol.ParseLang(r.Header.Get("Accept-Language")) }

// answer writes an ack as the response: its code is the status.
func (a *API) answer(w http.ResponseWriter, r *http.Request, ack protocol.Ack) {
	h := w.Header()
	h.Set("Content-Type", "application/json; charset=utf-8")
	if ack.Err != nil {
		a.limitHeaders(h, ack)
		h.Set("Content-Language", lang(r).String())
		h.Add("Vary", "Accept-Language")
	}
	if ack.Code == protocol.Unauthenticated {
		h.Set("WWW-Authenticate", "Bearer") // RFC 9110, section 11.6.1
	}
	w.WriteHeader(int(ack.Code))
	_, _ = w.Write(append(protocol.AppendAnswer(nil, ack, lang(r)), '\n')) // the client went away: nobody is left to tell
}

// refuse writes err as the response.
func (a *API) refuse(w http.ResponseWriter, r *http.Request, err *protocol.Error) {
	a.answer(w, r, protocol.Refuse("", err))
}

// limitHeaders tells when to come back, and by which rule. Retry-After is whole seconds, rounded up, so that waiting it
// out is always enough.
func (a *API) limitHeaders(h http.Header, ack protocol.Ack) {
	err := ack.Err
	if err.RetryAfter > 0 && (ack.Code == protocol.TooMany || ack.Code == protocol.Unavailable) {
		h.Set("Retry-After", strconv.FormatInt(wholeSeconds(err.RetryAfter), 10))
	}
	if ack.Code != protocol.TooMany {
		return
	}
	if err.RetryAfter <= 0 {
		h.Set("Retry-After", "1")
	}
	name, policy := "user", "" // slow mode and repeated text are rules of the room, not of a bucket
	if err.Rule != "" {
		name = err.Rule
	} else if err.Reason != "" {
		name = string(err.Reason)
	}
	if rule, ok := a.gate.Rules().Rule(err.Rule); ok {
		policy = policyOf(rule)
	} else {
		policy = fmt.Sprintf(`%q;q=1;w=%d`, name, wholeSeconds(err.RetryAfter))
	}
	h.Set("RateLimit-Policy", policy)
	h.Set("RateLimit", fmt.Sprintf(`%q;r=0;t=%d`, name, wholeSeconds(err.RetryAfter)))
}

// policyOf renders a rule as an item of RateLimit-Policy: q is the burst and w the seconds in which an empty bucket
// fills again, which is how the draft's quota and window describe a token bucket.
func policyOf(rule limit.Rule) string {
	l := rule.Limit
	if len(rule.Tiers) > 0 {
		l = rule.Tiers[0].Limit
	}
	per := time.Duration(l.Per)
	if per == 0 {
		per = time.Second
	}
	if l.Rate == 0 {
		return fmt.Sprintf(`%q;q=%d`, rule.Name, l.Burst)
	}
	window := math.Ceil(per.Seconds() * float64(l.Burst) / float64(l.Rate))
	return fmt.Sprintf(`%q;q=%d;w=%d`, rule.Name, l.Burst, int64(max(window, 1)))
}

// wholeSeconds rounds up to a whole second, at least 1.
func wholeSeconds(d time.Duration) int64 {
	return max(1, int64((d+time.Second-1)/time.Second))
}

// write sends v as the response.
func (a *API) write(w http.ResponseWriter, r *http.Request, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		a.fail(w, r, "encode", err)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_, _ = w.Write(append(b, '\n')) // the client went away: nobody is left to tell
}

// fail answers "internal" and keeps the detail for the log.
func (a *API) fail(w http.ResponseWriter, r *http.Request, what string, err error) {
	a.log.Error("request failed", "request", w.Header().Get(requestIDHeader), "route", r.Pattern, "doing", what, "err", err)
	a.refuse(w, r, &protocol.Error{Reason: protocol.ReasonInternal})
}
