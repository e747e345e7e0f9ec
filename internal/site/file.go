package site

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"regexp"
	"strings"
	"sync"

	"liveroom/internal/words"
)

// file is one embedded file, ready to be sent.
type file struct {
	name        string
	contentType string
	etag        string
	body        []byte
	zipped      func() []byte // once, when it is first asked for; nil where compressing does not pay
}

// types are set here, since what the host's mime table says differs from machine to machine.
var types = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".mjs": "text/javascript; charset=utf-8",
	".css": "text/css; charset=utf-8", ".svg": "image/svg+xml", ".png": "image/png", ".webp": "image/webp",
	".json": "application/json", ".woff2": "font/woff2", ".ico": "image/x-icon", ".webmanifest": "application/manifest+json",
}

// gap is a place in a script for a section of the words of all languages.
var gap = regexp.MustCompile(`\bWORDS\.\w+`)

// translated puts into a script the words that it names. Browsers of 2021 import no JSON.
func translated(script []byte) []byte {
	return gap.ReplaceAllFunc(script, func(place []byte) []byte {
		section := words.Section(strings.TrimPrefix(string(place), "WORDS."))
		if section == nil {
			return place
		}
		byTag := map[string]map[string]string{}
		for i, texts := range section {
			byTag[words.Languages()[i]] = texts
		}
		text, _ := json.Marshal(byTag) // strings can be encoded
		return text
	})
}

func load(files fs.FS) (map[string]*file, error) {
	out := map[string]*file{}
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		switch path.Ext(name) {
		case ".js":
			body = translated(body)
		case ".html":
			if name == "parts.html" {
				return nil
			}
			if body, err = composed(files, body); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		out[name] = newFile(name, body)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the pages: %w", err)
	}
	return out, nil
}

// Parts that pages share stand in parts.html, each between {{define name}} and {{end}}. A page has {{name argument}} where one belongs; the
// argument replaces {{.}} in it. (text/template would do, and make the binary a third larger.)
var (
	part      = regexp.MustCompile(`(?s)\{\{define (\w+)}}(.*?)\{\{end}}`)
	partPlace = regexp.MustCompile(`\{\{(\w+)(?: (.*?))?}}`)
)

// composed is a page with its parts.
func composed(files fs.FS, page []byte) ([]byte, error) {
	shared, err := fs.ReadFile(files, "parts.html")
	if err != nil {
		return nil, err
	}
	parts := map[string]string{}
	for _, m := range part.FindAllStringSubmatch(string(shared), -1) {
		parts[m[1]] = m[2]
	}
	out, err := fill(string(page), parts)
	return []byte(out), err
}

func fill(text string, parts map[string]string) (out string, err error) {
	out = partPlace.ReplaceAllStringFunc(text, func(place string) string {
		m := partPlace.FindStringSubmatch(place)
		body, ok := parts[m[1]]
		argument := m[2]
		if m[1] == "head" { // the page's script, and its styles
			script, styles, _ := strings.Cut(argument, " ")
			links := ""
			for name := range strings.FieldsSeq(styles) {
				links += "\n  <link rel=\"stylesheet\" href=\"/assets/css/" + name + ".css\">"
			}
			argument, body = script, strings.ReplaceAll(body, "\n  {{styles}}", links)
		}
		if !ok {
			err = fmt.Errorf("%s: no such part", place)
			return ""
		}
		inner, wrong := fill(strings.ReplaceAll(body, "{{.}}", argument), parts)
		if err == nil {
			err = wrong
		}
		return inner
	})
	return out, err
}

func newFile(name string, body []byte) *file {
	f := &file{name: name, body: body, contentType: types[path.Ext(name)]}
	if f.contentType == "" {
		f.contentType = mime.TypeByExtension(path.Ext(name))
	}
	if f.contentType == "" {
		f.contentType = "application/octet-stream"
	}
	sum := sha256.Sum256(body)
	f.etag = `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
	f.zipped = sync.OnceValue(func() []byte { return compress(body) })
	return f
}

// compress returns nil when less than a tenth would be saved.
func compress(body []byte) []byte {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		panic("site: " + err.Error()) // the level is a constant of the package
	}
	if _, err := z.Write(body); err != nil || z.Close() != nil || b.Len() > len(body)*9/10 {
		return nil
	}
	return b.Bytes()
}

func (f *file) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", f.contentType)
	h.Set("Cache-Control", "no-cache") // keep it, but ask each time: files have no version in their names
	body, etag := f.body, f.etag
	if zipped := f.zipped(); zipped != nil {
		h.Add("Vary", "Accept-Encoding")
		if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			h.Set("Content-Encoding", "gzip")
			body, etag = zipped, strings.TrimSuffix(f.etag, `"`)+`-gz"` // a strong ETag names the very bytes
		}
	}
	h.Set("ETag", etag)
	if match := r.Header.Get("If-None-Match"); match != "" && strings.Contains(match, etag) {
		h.Del("Content-Encoding")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Length", fmt.Sprint(len(body)))
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // the client went away: nobody is left to tell
	}
}
