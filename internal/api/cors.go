package api

import (
	"net/http"
	"slices"
	"strings"
)

// withCORS lets the pages of configured origins call the API and read its answers; other origins get no header, so
// their browsers keep the answer from them. No cookie is ever looked at, so credentials stay off.
func (a *API) withCORS(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		origin := r.Header.Get("Origin")
		w.Header().Add("Vary", "Origin")
		if origin == "" || !slices.ContainsFunc(a.origins, func(o string) bool { return strings.EqualFold(o, origin) }) {
			next.ServeHTTP(w, r)
			return
		}
		h := w.Header()
		h.Set("Access-Control-Allow-Origin", origin)
		h.Set("Access-Control-Expose-Headers", "Retry-After, RateLimit, RateLimit-Policy, ETag, "+requestIDHeader)
		if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
			h.Set("Access-Control-Allow-Methods", "GET, PUT, POST, DELETE")
			h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Accept-Language, If-Match, "+requestIDHeader)
			h.Set("Access-Control-Max-Age", "600")
			w.WriteHeader(http.StatusNoContent)
			return
		}
		next.ServeHTTP(w, r)
	})
}
