package site

import (
	"fmt"
	"io/fs"
	"net/http"

	"liveroom/protocol"
)

// Pages that must be in the demo's folder.
const (
	lobbyPage = "lobby.html"
	roomPage  = "room.html"
	hostPage  = "host.html"
	showPage  = "summary.html"
	adminPage = "admin.html"
)

// Site holds the pages.
type Site struct {
	demo, client map[string]*file
	origins      []string
}

// New reads all files of the demo and of the client library. Pages of origins may load the client.
func New(demo, client fs.FS, origins []string) (*Site, error) {
	s := &Site{origins: origins}
	var err error
	if s.demo, err = load(demo); err != nil {
		return nil, err
	}
	if s.client, err = load(client); err != nil {
		return nil, err
	}
	for _, page := range []string{lobbyPage, roomPage, hostPage, showPage, adminPage} {
		if s.demo[page] == nil {
			return nil, fmt.Errorf("page %s is not embedded", page)
		}
	}
	return s, nil
}

// Viewer registers the viewers' pages on mux.
func (s *Site) Viewer(mux *http.ServeMux) {
	mux.Handle("GET /{$}", s.page(lobbyPage))
	mux.Handle("GET /room/{room}", roomOnly(s.page(roomPage)))
	mux.Handle("GET /host/{room}", roomOnly(s.page(hostPage)))
	mux.Handle("GET /host/{room}/summary", roomOnly(s.page(showPage)))
	s.assets(mux)
}

// Admin registers the operators' page on mux.
func (s *Site) Admin(mux *http.ServeMux) {
	mux.Handle("GET /{$}", s.page(adminPage))
	s.assets(mux)
}

// page serves one of the pages that New made sure of.
func (s *Site) page(name string) http.Handler { return secure(s.demo[name]) }

func (s *Site) assets(mux *http.ServeMux) {
	mux.Handle("GET /assets/{file...}", secure(folder(s.demo)))
	mux.Handle("GET /client/{file...}", secure(s.shared(folder(s.client))))
	if icon := s.demo["icon.svg"]; icon != nil {
		mux.Handle("GET /favicon.ico", secure(icon))
	}
}

func folder(files map[string]*file) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f, ok := files[r.PathValue("file")]
		if !ok {
			http.NotFound(w, r)
			return
		}
		f.ServeHTTP(w, r)
	})
}

// roomOnly keeps pages from addresses that can't be a room.
func roomOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !protocol.ValidRoom(r.PathValue("room")) {
			http.NotFound(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}
