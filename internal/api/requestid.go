package api

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"runtime/debug"

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
				a.fail(w, r, "panic", fmt.Errorf("%v\n%s", p, debug.Stack()))
			}
		}()
		next.ServeHTTP(w, r)
	})
}
