package backup

import (
	"errors"
	"path"
	"strings"
	"time"
)

// Format is the form that this version writes, and the highest that it reads.
const Format = 1

// ErrDamaged says that a file is no whole backup.
var ErrDamaged = errors.New("the backup is not whole")

// Manifest says what a backup is of.
type Manifest struct {
	Format  int       `json:"format"`
	Version string    `json:"version"` // that wrote it, such as "liveserver v1.2.3"
	Node    string    `json:"node"`
	Made    time.Time `json:"made"`
	Secret  bool      `json:"secret"` // it has one
}

// end is what a whole backup ends with.
type end struct {
	Streams int    `json:"streams"`
	Pieces  int    `json:"pieces"`
	Bytes   int64  `json:"bytes"`
	SHA256  string `json:"sha256"` // of the secret, the descriptions and all pieces, in their order
}

// Names in the archive.
const (
	manifestName = "manifest.json"
	secretName   = "secret"
	endName      = "end.json"
	streamsDir   = "streams"
	aboutName    = "stream.json"
)

// pieceMost bounds a piece, a description or the secret: a reader holds one at a time.
const pieceMost = 4 << 20

// streamOf returns the stream of an entry, and what of it that is; "" when it is of no stream.
func streamOf(name string) (stream, what string) {
	dir, what := path.Split(name)
	stream, ok := strings.CutPrefix(path.Clean(dir), streamsDir+"/")
	if !ok || stream == "" || strings.ContainsAny(stream, "/\\") {
		return "", ""
	}
	return stream, what
}
