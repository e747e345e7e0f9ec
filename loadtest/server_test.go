package main

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// serverDir holds the liveserver that the tests share; "" before it is built.
var serverDir string

var builtServer = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "loadtest-server-")
	if err != nil {
		return "", err
	}
	serverDir = dir
	binary := filepath.Join(dir, "liveserver")
	return binary, build(context.Background(), binary)
})

// liveserver is the path of the real server.
func liveserver(t *testing.T) string {
	t.Helper()
	binary, err := builtServer()
	if err != nil {
		t.Fatal(err)
	}
	return binary
}
