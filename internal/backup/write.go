package backup

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"path"
)

// Writer writes one backup; [Writer.Close] makes it whole.
type Writer struct {
	tar    *tar.Writer
	made   Manifest
	stream string
	piece  int // of the stream
	all    end
	sum    hash.Hash
}

// NewWriter begins a backup on w. secret is "" when there is none.
func NewWriter(w io.Writer, m Manifest, secret string) (*Writer, error) {
	m.Format, m.Secret = Format, secret != ""
	b := &Writer{tar: tar.NewWriter(w), made: m, sum: sha256.New()}
	head, err := json.Marshal(m)
	if err == nil {
		err = b.put(manifestName, head)
	}
	if err == nil && secret != "" {
		b.sum.Write([]byte(secret))
		err = b.put(secretName, []byte(secret))
	}
	return b, err
}

// Stream begins a stream.
func (b *Writer) Stream(name string, about json.RawMessage) error {
	b.stream, b.piece = name, 0
	b.all.Streams++
	b.sum.Write(about)
	return b.put(path.Join(streamsDir, name, aboutName), about)
}

// Chunk adds to the stream that was begun last.
func (b *Writer) Chunk(piece []byte) error {
	b.piece++
	b.all.Pieces++
	b.all.Bytes += int64(len(piece))
	b.sum.Write(piece)
	return b.put(path.Join(streamsDir, b.stream, fmt.Sprintf("%08d", b.piece)), piece)
}

// Close writes the end.
func (b *Writer) Close() error {
	b.all.SHA256 = hex.EncodeToString(b.sum.Sum(nil))
	tail, err := json.Marshal(b.all)
	if err == nil {
		err = b.put(endName, tail)
	}
	if err == nil {
		err = b.tar.Close()
	}
	return err
}

func (b *Writer) put(name string, content []byte) error {
	err := b.tar.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(content)), ModTime: b.made.Made})
	if err == nil {
		_, err = b.tar.Write(content)
	}
	if err != nil {
		return fmt.Errorf("write the backup: %w", err)
	}
	return nil
}
