package site

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"liveroom/internal/words"
	"liveroom/web"
)

func pages(t *testing.T) *http.ServeMux {
	t.Helper()
	page := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(strings.Repeat(s, 200))} }
	s, err := New(fstest.MapFS{
		"lobby.html": page("lobby "), "room.html": page("room "), "host.html": page("host "), "summary.html": page("summary "), "admin.html": page("admin "),
		"views/a.js": page("a "), "parts.html": {Data: []byte(`{{define head}}<head>{{end}}`)},
	}, fstest.MapFS{"c.js": page("c ")}, []string{"https://shop.test"})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	s.Viewer(mux)
	return mux
}

// A page has the parts that it names, those within parts included; one that is not there is an error, as is a page's own.
func TestParts(t *testing.T) {
	files := fstest.MapFS{"parts.html": {Data: []byte("{{define head}}<{{.}}>\n  {{styles}}\n{{end}}{{define a}}a{{.}}{{b {{.}}}}{{end}}{{define b}}[b{{.}}]{{end}}")}}
	got, err := composed(files, []byte("{{head x y z}}{{a 1}}{{b}}"))
	want := "<x>\n  <link rel=\"stylesheet\" href=\"/assets/css/y.css\">\n  <link rel=\"stylesheet\" href=\"/assets/css/z.css\">\na1[b1][b]"
	if err != nil || string(got) != want {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
	if _, err := composed(files, []byte("{{c}}")); err == nil {
		t.Error("a page of a part that is not there")
	}
}

func get(t *testing.T, h http.Handler, path string, header ...string) *http.Response {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func TestPages(t *testing.T) {
	mux := pages(t)
	for path, want := range map[string]string{
		"/": "lobby ", "/room/demo": "room ", "/host/demo": "host ", "/host/demo/summary": "summary ", "/assets/views/a.js": "a ", "/client/c.js": "c ",
	} {
		res := get(t, mux, path)
		body, _ := io.ReadAll(res.Body)
		if res.StatusCode != 200 || !strings.HasPrefix(string(body), want) {
			t.Errorf("%s: %d %.20q", path, res.StatusCode, body)
		}
		csp := res.Header.Get("Content-Security-Policy")
		if !strings.HasPrefix(csp, "default-src 'self'; connect-src 'self' ws://example.com wss://example.com;") || strings.Contains(csp, "unsafe") {
			t.Errorf("%s: policy %q", path, csp)
		}
		if res.Header.Get("X-Content-Type-Options") != "nosniff" || !strings.Contains(csp, "frame-ancestors 'self'") {
			t.Errorf("%s: headers %v", path, res.Header)
		}
	}
	for _, path := range []string{"/room/a%20b", "/room/a.b", "/room/", "/assets/x.js", "/assets/../site.go", "/client/", "/x"} {
		if res := get(t, mux, path); res.StatusCode == 200 {
			t.Errorf("%s is served", path)
		}
	}
}

// TestWordsOfEveryLanguage: a script that names a section of the words is served with it, in all languages.
func TestWordsOfEveryLanguage(t *testing.T) {
	s, err := New(web.Demo(), web.Client(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, section := range map[string]string{"i18n/page.js": "page", "i18n/admin.js": "admin", "faults.js": "faults"} {
		body := string(s.demo[name].body)
		for i, texts := range words.Section(section) {
			if want, _ := json.Marshal(texts); !strings.Contains(body, fmt.Sprintf("%q:%s", words.Languages()[i], want)) {
				t.Errorf("%s lacks the words of %s", name, words.Languages()[i])
			}
		}
	}
	for name, f := range s.demo {
		if gap.Match(f.body) {
			t.Errorf("%s names words that nobody has", name)
		}
		for _, named := range regexp.MustCompile(`"/assets/([\w/-]+\.\w+)`).FindAllSubmatch(f.body, -1) {
			if s.demo[string(named[1])] == nil {
				t.Errorf("%s names %s, which is not there", name, named[1])
			}
		}
	}
}

func TestCaching(t *testing.T) {
	mux := pages(t)
	first := get(t, mux, "/assets/views/a.js")
	etag := first.Header.Get("ETag")
	if etag == "" || first.Header.Get("Cache-Control") != "no-cache" || !strings.HasPrefix(first.Header.Get("Content-Type"), "text/javascript") {
		t.Fatalf("headers %v", first.Header)
	}
	if again := get(t, mux, "/assets/views/a.js", "If-None-Match", etag); again.StatusCode != http.StatusNotModified {
		t.Errorf("with its ETag: %d", again.StatusCode)
	}
	zipped := get(t, mux, "/assets/views/a.js", "Accept-Encoding", "br, gzip")
	z, err := gzip.NewReader(zipped.Body)
	if err != nil || zipped.Header.Get("Content-Encoding") != "gzip" || zipped.Header.Get("ETag") == etag {
		t.Fatalf("compressed: %v %v", err, zipped.Header)
	}
	if body, _ := io.ReadAll(z); !strings.HasPrefix(string(body), "a a ") {
		t.Errorf("compressed body %.20q", body)
	}
}

func TestPolicyTakesNoWordsFromHost(t *testing.T) {
	for _, host := range []string{"", "a b", "a;script-src *", "a'", "a*"} {
		if p := policy(host); strings.Contains(p, "ws://") {
			t.Errorf("%q got into %q", host, p)
		}
	}
	if p := policy("[::1]:8080"); !strings.Contains(p, "ws://[::1]:8080") {
		t.Errorf("IPv6: %q", p)
	}
}

func TestMissingPage(t *testing.T) {
	if _, err := New(fstest.MapFS{}, fstest.MapFS{}, nil); err == nil {
		t.Error("a site without pages was made")
	}
}

func TestPagesOfConfiguredOriginsLoadTheClient(t *testing.T) {
	mux := pages(t)
	for origin, want := range map[string]string{"https://shop.test": "cross-origin", "https://evil.test": "same-origin", "": "same-origin"} {
		h := get(t, mux, "/client/c.js", "Origin", origin).Header
		allowed := h.Get("Access-Control-Allow-Origin")
		if h.Get("Cross-Origin-Resource-Policy") != want || (allowed == origin) != (want == "cross-origin") && origin != "" {
			t.Errorf("%q: %v", origin, h)
		}
		if !strings.Contains(strings.Join(h.Values("Vary"), ","), "Origin") {
			t.Errorf("%q: Vary %q", origin, h.Values("Vary"))
		}
	}
	if h := get(t, mux, "/assets/views/a.js", "Origin", "https://shop.test").Header; h.Get("Access-Control-Allow-Origin") != "" {
		t.Error("the demo's own files are nobody else's")
	}
}
