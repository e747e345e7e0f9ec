package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"liveroom/limit"
	"liveroom/protocol"
)

// lang is the language of an answer's msg.
func lang(r *http.Request) protocol.Lang { return protocol.ParseLang(r.Header.Get("Accept-Language")) }

// handler answers a call: with an [protocol.Ack], whose code is the status, with a [reply], with anything else in JSON, or, having
// written the answer itself, with nil. Its error becomes the refusal.
type handler func(w http.ResponseWriter, r *http.Request, c call) (any, error)

// reply is an answer with a status of its own.
type reply struct {
	status int
	body   any
}

// storeError is an error of a store that, unless it wraps one that is known, did not answer.
type storeError struct{ error }

// Unwrap returns what the store said.
func (e storeError) Unwrap() error { return e.error }

// storeRetry is the wait told when a store does not answer.
const storeRetry = time.Second

// respond writes what a handler returned.
func (a *API) respond(w http.ResponseWriter, r *http.Request, body any, err error) {
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	switch body := body.(type) {
	case nil:
	case protocol.Ack:
		a.answer(w, r, body)
	case reply:
		a.write(w, r, body)
	default:
		a.write(w, r, reply{http.StatusOK, body})
	}
}

// refuse turns an error into the response. What is not known to be the caller's fault, or a store's, is "internal", with the detail
// in the log.
func (a *API) refuse(w http.ResponseWriter, r *http.Request, err error) {
	var known *protocol.Error
	var away storeError
	switch body, limits := rulesRefusal(err); {
	case errors.As(err, &known):
	case limits:
		stays := "limits_stay"
		if of := (catalogueError{}); errors.As(err, &of) {
			stays = "catalogue_stays"
		}
		if of := (filterError{}); errors.As(err, &of) {
			stays = "filter_stays"
		}
		body.Msg = lang(r).Say(stays, err.Error())
		a.write(w, r, reply{body.Code, body})
		return
	case errors.As(err, &away):
		a.logged(w, r, slog.LevelWarn, err)
		known = &protocol.Error{Reason: protocol.ReasonTryLater, RetryAfter: limit.Jitter(storeRetry)}
	default:
		a.logged(w, r, slog.LevelError, err)
		known = &protocol.Error{Reason: protocol.ReasonInternal}
	}
	a.answer(w, r, protocol.Refuse("", known))
}

func (a *API) logged(w http.ResponseWriter, r *http.Request, level slog.Level, err error) {
	a.cfg.Log.Log(r.Context(), level, "request failed", "request", w.Header().Get(requestIDHeader), "route", r.Pattern, "room", r.PathValue("room"), "err", err)
}

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
		limit.SetHeaders(h, limit.Decision{Verdict: limit.Reject, Rule: err.Rule, RetryAfter: err.RetryAfter}, a.cfg.Gate.Rules())
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

// write sends a reply in JSON.
func (a *API) write(w http.ResponseWriter, r *http.Request, v reply) {
	b, err := json.Marshal(v.body)
	if err != nil {
		a.refuse(w, r, fmt.Errorf("encode: %w", err))
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(v.status)
	_, _ = w.Write(append(b, '\n')) // the client went away: nobody is left to tell
}
