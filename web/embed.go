// Package web carries the browser's side of liveroom inside the binary: the
// demo pages (lobby, room, host, admin) and the JavaScript client they are
// built on. It only embeds files; cmd/liveserver decides where they are served.
//
// The idea: what is in the repository is what the browser gets. Plain ES
// modules, no build step and nothing fetched from elsewhere, so that the pages
// run under the policy "default-src 'self'".
//
// The pages name each other by absolute addresses: /assets/ is [Demo], /client/
// is [Client]. Modules of the demo reach the client by a relative path, which is
// the same in the repository and on the server.
//
// Everything here is read-only and safe for concurrent use.
package web

import (
	"embed"
	"io/fs"
)

//go:embed demo client
var files embed.FS

// Demo returns the pages and what they load: lobby.html, room.html, host.html,
// admin.html and their modules, styles and pictures.
func Demo() fs.FS { return mustSub("demo") }

// Client returns the JavaScript client, which knows no DOM and may be used by
// pages other than the demo's.
func Client() fs.FS { return mustSub("client") }

// mustSub panics on a folder that is not embedded, which the compiler's own
// check of the embed pattern rules out.
func mustSub(dir string) fs.FS {
	sub, err := fs.Sub(files, dir)
	if err != nil {
		panic(err)
	}
	return sub
}
