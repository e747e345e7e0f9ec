package backup

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
)

// Reader reads one backup, in its order.
type Reader struct {
	Manifest Manifest
	Secret   string // "": none

	tar    *tar.Reader
	sum    hash.Hash
	all    end
	stream string
	ahead  *entry // was read, and belongs to what comes next
}

type entry struct {
	name    string
	content []byte
}

// NewReader reads the beginning. An error is one of r, [ErrDamaged], or that another version wrote it.
func NewReader(r io.Reader) (*Reader, error) {
	b := &Reader{tar: tar.NewReader(r), sum: sha256.New()}
	head, err := b.next()
	if err != nil {
		return nil, err
	}
	if head.name != manifestName || json.Unmarshal(head.content, &b.Manifest) != nil || b.Manifest.Format < 1 {
		return nil, fmt.Errorf("%w: it does not begin with a manifest", ErrDamaged)
	}
	if b.Manifest.Format > Format {
		return nil, fmt.Errorf("%s wrote this backup in format %d, and this one reads up to %d: restore it with that version or a later one",
			b.Manifest.Version, b.Manifest.Format, Format)
	}
	if b.Manifest.Secret {
		secret, err := b.next()
		if err != nil {
			return nil, err
		}
		if secret.name != secretName {
			return nil, fmt.Errorf("%w: %s where the secret should be", ErrDamaged, secret.name)
		}
		b.sum.Write(secret.content)
		b.Secret = string(secret.content)
	}
	return b, nil
}

// Stream returns the next stream, whose content [Reader.Chunk] returns; io.EOF behind the last one of a whole backup.
func (b *Reader) Stream() (name string, about json.RawMessage, err error) {
	for {
		e, err := b.next()
		if err != nil {
			return "", nil, err
		}
		if e.name == endName {
			return "", nil, b.compare(e.content)
		}
		stream, what := streamOf(e.name)
		switch {
		case stream == "" || what != aboutName && stream != b.stream:
			return "", nil, fmt.Errorf("%w: %s does not belong there", ErrDamaged, e.name)
		case what == aboutName:
			b.stream = stream
			b.all.Streams++
			b.sum.Write(e.content)
			return stream, e.content, nil
		}
		b.count(e.content) // of a stream that nobody has read
	}
}

// Chunk returns the stream's next piece, io.EOF behind the last. It is good until the next call.
func (b *Reader) Chunk() ([]byte, error) {
	e, err := b.next()
	if err != nil {
		return nil, err
	}
	if stream, what := streamOf(e.name); stream != b.stream || what == aboutName {
		b.ahead = e
		return nil, io.EOF
	}
	b.count(e.content)
	return e.content, nil
}

func (b *Reader) count(piece []byte) {
	b.all.Pieces++
	b.all.Bytes += int64(len(piece))
	b.sum.Write(piece)
}

// compare returns io.EOF when what was read is what was written.
func (b *Reader) compare(tail []byte) error {
	b.all.SHA256 = hex.EncodeToString(b.sum.Sum(nil))
	var said end
	if err := json.Unmarshal(tail, &said); err != nil || said != b.all {
		return fmt.Errorf("%w: it says that it holds %+v, and holds %+v", ErrDamaged, said, b.all)
	}
	return io.EOF
}

func (b *Reader) next() (*entry, error) {
	if e := b.ahead; e != nil {
		b.ahead = nil
		return e, nil
	}
	h, err := b.tar.Next()
	switch {
	case errors.Is(err, io.EOF):
		return nil, fmt.Errorf("%w: it has no end; its writing was cut short", ErrDamaged)
	case errors.Is(err, tar.ErrHeader) || errors.Is(err, io.ErrUnexpectedEOF):
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	case err != nil:
		return nil, err
	case h.Size > pieceMost:
		return nil, fmt.Errorf("%w: %s has %d bytes, at most %d are written", ErrDamaged, h.Name, h.Size, pieceMost)
	}
	content, err := io.ReadAll(b.tar)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("%w: %s is cut short", ErrDamaged, h.Name)
	}
	return &entry{h.Name, content}, err
}

// Verify reads a whole backup and returns what it says of itself. Nothing is made of it.
func Verify(r io.Reader) (Manifest, error) {
	b, err := NewReader(r)
	if err != nil {
		return Manifest{}, err
	}
	for {
		if _, _, err := b.Stream(); errors.Is(err, io.EOF) {
			return b.Manifest, nil
		} else if err != nil {
			return b.Manifest, err
		}
	}
}
