package site

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestTheOperatorsListenerIsNoOtherPages(t *testing.T) {
	serve := func(o Operators, method, path, host string, header ...string) int {
		r := httptest.NewRequest(method, path, nil)
		r.Host = host
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		w := httptest.NewRecorder()
		o.Guard(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(w, r)
		return w.Code
	}
	local := Operators{Addr: "127.0.0.1:8081", Hosts: []string{"ops.test"}, Origins: []string{"https://desk.test"}, Scraped: []string{"/metrics"}}
	open := local
	open.Addr = "0.0.0.0:8081"
	named := local
	named.Addr = "liveroom-0.internal:8081"
	for _, tc := range []struct {
		o                  Operators
		method, path, host string
		header             []string
		want               int
	}{
		{local, "GET", "/", "127.0.0.1:8081", nil, 200},
		{local, "GET", "/", "localhost:8081", nil, 200},
		{local, "GET", "/", "[::1]:8081", nil, 200},
		{local, "GET", "/", "ops.test", nil, 200},
		{local, "GET", "/", "OPS.test.:8081", nil, 200},
		{named, "GET", "/", "liveroom-0.internal:8081", nil, 200},
		{local, "GET", "/debug/pprof/cmdline", "evil.test", nil, 403},
		{local, "GET", "/metrics", "evil.test", nil, 403},
		{local, "GET", "/", "", nil, 403},
		{local, "GET", "/", "127.0.0.1.evil.test", nil, 403},
		{open, "GET", "/metrics", "prometheus.target", nil, 200},
		{open, "GET", "/api/v1/rooms", "prometheus.target", nil, 403},
		{open, "GET", "/api/v1/rooms", "10.0.0.7:8081", nil, 200},
		{local, "POST", "/debug/free", "127.0.0.1:8081", []string{"Origin", "https://evil.test"}, 403},
		{local, "POST", "/debug/free", "127.0.0.1:8081", []string{"Origin", "null"}, 403},
		{local, "POST", "/debug/free", "127.0.0.1:8081", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{local, "GET", "/debug/pprof/heap", "127.0.0.1:8081", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"}, 403},
		{local, "GET", "/debug/pprof/heap", "127.0.0.1:8081", []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, 403},
		{local, "GET", "/", "127.0.0.1:8081", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, 200},
		{local, "GET", "/", "127.0.0.1:8081", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"}, 403},
		{local, "PUT", "/api/v1/limits/rules", "127.0.0.1:8081", []string{"Origin", "http://127.0.0.1:8081", "Sec-Fetch-Site", "same-origin"}, 200},
		{local, "PUT", "/api/v1/limits/rules", "127.0.0.1:8081", []string{"Origin", "https://desk.test", "Sec-Fetch-Site", "cross-site"}, 200},
	} {
		if got := serve(tc.o, tc.method, tc.path, tc.host, tc.header...); got != tc.want {
			t.Errorf("%s %s at %s, Host %q, %q: %d, want %d", tc.method, tc.path, tc.o.Addr, tc.host, tc.header, got, tc.want)
		}
	}
}
