package api

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"

	"liveroom/protocol"
)

// requestIDHeader carries the id by which a caller finds its request in the log.
const requestIDHeader = "X-Request-Id"

// withRequestID keeps the caller's id where it is a plain one and makes one otherwise. Every answer has it, and the word
// that no browser may guess what it is.
func withRequestID(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get(requestIDHeader)
		if !protocol.ValidID(id) {
			id = rand.Text()[:16]
		}
		w.Header().Set(requestIDHeader, id)
		w.Header().Set("X-Content-Type-Options", "nosniff") // what a stranger wrote is JSON, whatever it looks like
		next.ServeHTTP(w, r)
	})
}

// withRecover answers 500 instead of cutting the connection, unless the handler asked for the cut.
func (a *API) withRecover(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if p := recover(); p != nil {
				if p == http.ErrAbortHandler {
					panic(p)
				}
				a.refuse(w, r, fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// withCORS lets the pages of configured origins call the API and read its answers; other origins get no header, so
// their browsers keep the answer from them. No cookie is ever looked at, so credentials stay off.
func (a *API) withCORS(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		origin := r.Header.Get("Origin")
		w.Header().Add("Vary", "Origin")
		if origin == "" || !slices.ContainsFunc(a.cfg.Origins, func(o string) bool { return strings.EqualFold(o, origin) }) {
			next.ServeHTTP(w, r)
			return
		}
		h := w.Header()
		h.Set("Access-Control-Allow-Origin", origin)
		h.Set("Access-Control-Expose-Headers", "Retry-After, RateLimit, RateLimit-Policy, ETag, "+requestIDHeader)
		if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
			h.Set("Access-Control-Allow-Methods", "GET, PUT, POST, DELETE")
			h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Accept-Language, If-Match, traceparent, "+requestIDHeader)
			h.Set("Access-Control-Max-Age", "600")
			w.WriteHeader(http.StatusNoContent)
			return
		}
		next.ServeHTTP(w, r)
	})
}
