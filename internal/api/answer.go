package api

import (
	"encoding/json"
	"fmt"
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
	if err.Rule != "" {
		limit.SetHeaders(h, limit.Decision{Verdict: limit.Reject, Rule: err.Rule, RetryAfter: err.RetryAfter}, a.gate.Rules())
		return
	}
	// Slow mode and repeated text are rules of the room, not of a bucket: one message per wait.
	wait := wholeSeconds(err.RetryAfter)
	h.Set("RateLimit-Policy", fmt.Sprintf(`%q;q=1;w=%d`, err.Reason, wait))
	h.Set("RateLimit", fmt.Sprintf(`%q;r=0;t=%d`, err.Reason, wait))
}

// wholeSeconds rounds up to a whole second, at least 1.
func wholeSeconds(d time.Duration) int64 {
	return max(1, int64((d+time.Second-1)/time.Second))
}

// write sends v as the response.
func (a *API) write(w http.ResponseWriter, r *http.Request, v any) {
	a.writeStatus(w, r, http.StatusOK, v)
}

func (a *API) writeStatus(w http.ResponseWriter, r *http.Request, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		a.fail(w, r, "encode", err)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n')) // the client went away: nobody is left to tell
}

// fail answers "internal" and keeps the detail for the log.
func (a *API) fail(w http.ResponseWriter, r *http.Request, what string, err error) {
	a.log.Error("request failed", "request", w.Header().Get(requestIDHeader), "route", r.Pattern, "doing", what, "err", err)
	a.refuse(w, r, &protocol.Error{Reason: protocol.ReasonInternal})
}
