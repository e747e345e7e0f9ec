package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"liveroom/fanout/link"
)

// Calls of JetStream that nats.go does not make.
const (
	snapshotCall = "$JS.API.STREAM.SNAPSHOT."
	restoreCall  = "$JS.API.STREAM.RESTORE."
)

// backupChunk is the size of a chunk: four of them are under way at a time, so that who takes a backup slowly holds no memory up.
const (
	backupChunk  = 256 << 10
	backupWindow = 4 * backupChunk
)

// backupWait is how long the store may take for the next chunk of a backup.
const backupWait = 30 * time.Second

// Backup is told all streams on disk, one after the other: a stream's name and description, then its content in chunks.
type Backup interface {
	Stream(name string, about json.RawMessage) error
	Chunk([]byte) error
}

// Snapshot hands every stream on disk to b, each as it is at an instant, while writes go on. What is being paid for comes before the
// ledger, so that a restored ledger never lacks a gift whose payment looks ended. Recent danmaku, which are in memory, are left out.
// An error of b ends it. It is for an embedded store, and costs its writers nothing but the disk's time.
func (s *Store) Snapshot(ctx context.Context, b Backup) error {
	names := []string{link.IntentStream}
	for _, cfg := range s.streamConfigs() {
		if cfg.Storage == jetstream.FileStorage && cfg.Name != link.IntentStream {
			names = append(names, cfg.Name)
		}
	}
	for _, name := range names {
		if err := s.snapshot(ctx, name, b); err != nil {
			return fmt.Errorf("back up the stream %s: %w", name, err)
		}
	}
	return nil
}

// snapshot hands over one stream. Its own connection: chunks must not wait before gifts' answers.
func (s *Store) snapshot(ctx context.Context, stream string, b Backup) error {
	c, err := s.link.Inside("backup")
	if err != nil {
		return err
	}
	defer c.Close()
	inbox := c.NewInbox()
	chunks, err := c.SubscribeSync(inbox)
	if err != nil {
		return err
	}
	about, err := jsCall(ctx, c, snapshotCall+stream, map[string]any{
		"deliver_subject": inbox, "no_consumers": true, "chunk_size": backupChunk, "window_size": backupWindow,
	})
	if err != nil {
		return err
	}
	if err := b.Stream(stream, about); err != nil {
		return err
	}
	for {
		m, err := nextChunk(ctx, chunks)
		if err != nil {
			return err
		}
		if len(m.Data) == 0 { // the end, or why there is none
			if code := m.Header.Get("Status"); code != "" && code != "204" {
				return fmt.Errorf("%s %s", code, m.Header.Get("Description"))
			}
			return nil
		}
		if err := b.Chunk(m.Data); err != nil {
			return err
		}
		if m.Reply == "" {
			continue // the last one
		}
		if err := m.Respond(nil); err != nil {
			return err
		}
	}
}

func nextChunk(ctx context.Context, chunks *nats.Subscription) (*nats.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, backupWait)
	defer cancel()
	return chunks.NextMsgWithContext(ctx)
}

// RestoreStream makes a stream of what [Store.Snapshot] said of it. next returns its chunks, and then io.EOF. The store is new: a
// stream of this name is an error.
func RestoreStream(ctx context.Context, l *link.Link, stream string, about json.RawMessage, next func() ([]byte, error)) error {
	var described struct {
		Config json.RawMessage `json:"config"`
		State  json.RawMessage `json:"state"`
	}
	if err := json.Unmarshal(about, &described); err != nil {
		return err
	}
	accepted, err := jsCall(ctx, l.Store, restoreCall+stream, described)
	if err != nil {
		return err
	}
	var to struct {
		Subject string `json:"deliver_subject"`
	}
	if err := json.Unmarshal(accepted, &to); err != nil {
		return err
	}
	for {
		chunk, err := next()
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if _, failed := jsAnswer(ctx, l.Store, to.Subject, chunk); failed != nil {
			return failed
		}
		if err != nil { // the empty chunk was the end
			return nil
		}
	}
}

// jsCall makes a call of JetStream and returns its answer.
func jsCall(ctx context.Context, c *nats.Conn, subject string, call any) (json.RawMessage, error) {
	body, err := json.Marshal(call)
	if err != nil {
		return nil, err
	}
	return jsAnswer(ctx, c, subject, body)
}

func jsAnswer(ctx context.Context, c *nats.Conn, subject string, body []byte) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, backupWait)
	defer cancel()
	m, err := c.RequestWithContext(ctx, subject, body)
	if err != nil || len(m.Data) == 0 {
		return nil, err
	}
	var said struct {
		Error *struct {
			Description string `json:"description"`
		} `json:"error"`
	}
	if err := json.Unmarshal(m.Data, &said); err != nil {
		return nil, fmt.Errorf("answer of the store: %w", err)
	}
	if said.Error != nil {
		return nil, errors.New(cmp.Or(said.Error.Description, "refused"))
	}
	return m.Data, nil
}

// Restored is for a store that came out of a backup, once, before it serves: the ledger gets a name of its own, which voids the
// cursors of everybody who has read further than it, and skips the numbers of a busy minute. It returns how many gifts there are.
func (s *Store) Restored(ctx context.Context) (gifts uint64, err error) {
	info, err := s.link.StreamInfo(ctx, link.GiftStream)
	if err != nil {
		return 0, err
	}
	gifts = info.State.Msgs
	if last := info.State.LastSeq; last > 0 {
		if err := s.Gifts.skipTo(ctx, last+skipGap, last); err != nil {
			return 0, err
		}
	}
	if err := s.Gifts.rename(ctx); err != nil {
		return 0, err
	}
	if info, err = s.link.StreamInfo(ctx, link.GiftStream); err != nil {
		return 0, err
	}
	s.Gifts.know(info)
	s.marks.met(link.GiftStream, info.State.LastSeq)
	s.marks.ledger(ledgerName(info), ledgerHoles(info.State))
	return gifts, nil
}
