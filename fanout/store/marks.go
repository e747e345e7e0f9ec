package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"liveroom/fanout/link"
	"liveroom/internal/lock"
)

// MarksFile is the name of the marks in the data directory.
const MarksFile = "store.marks"

// marks are what a node knows of the durable streams apart from them: a store that is another one, or shorter than what it
// has acknowledged, can't tell that itself. They lie in two slots of one file, written in turn, so that a crash leaves one
// of them whole. Safe for concurrent use.
type marks struct {
	log  *slog.Logger
	file *os.File // owned by the writer; nil keeps nothing
	soon link.Wake

	mu    lock.Mutex[lock.Leaf]
	state marked // guarded by mu
	dirty bool   // guarded by mu
}

// marked is the content of a slot.
type marked struct {
	Turn    uint64            `json:"turn"`              // grows with each writing
	Ledger  string            `json:"ledger"`            // the identity of the gift ledger
	Holes   uint64            `json:"holes"`             // sequences between its first and last that hold no gift, rightly
	Revoked string            `json:"revoked,omitempty"` // the name of the stream of what is revoked, once something was
	Days    []day             `json:"days"`              // where the ledger ended, once a day, the oldest first
	Last    map[string]uint64 `json:"last"`              // by stream: the highest acknowledged sequence
}

// day is where the ledger ended at an instant: what came behind it is younger.
type day struct {
	At  int64  `json:"at"` // Unix seconds
	Seq uint64 `json:"seq"`
}

// daysKept is as many as the ledger keeps gifts, and some more.
const daysKept = 40

const (
	slotBytes = 4096 // a page, which is written whole
	slots     = 2
	// marksSync is how often the marks are brought to the disk itself. What a process writes outlives the process at
	// once; only a loss of power takes back what was not synced.
	marksSync = time.Second
)

// openMarks reads the marks in dir, or begins new ones. known is false when there were none.
func openMarks(dir string, log *slog.Logger) (m *marks, known bool, err error) {
	m = &marks{log: log, soon: link.NewWake(), state: marked{Last: map[string]uint64{}}}
	if dir == "" {
		return m, false, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, false, fmt.Errorf("data directory: %w", err)
	}
	name := filepath.Join(dir, MarksFile)
	m.file, err = os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, false, fmt.Errorf("marks of the store: %w", err)
	}
	raw, err := io.ReadAll(io.LimitReader(m.file, slots*slotBytes))
	if err != nil {
		return nil, false, errors.Join(fmt.Errorf("marks of the store: %w", err), m.file.Close())
	}
	for i := range slots {
		if s, ok := readSlot(raw[min(i*slotBytes, len(raw)):min((i+1)*slotBytes, len(raw))]); ok && (!known || s.Turn > m.state.Turn) {
			m.state, known = s, true
		}
	}
	if len(bytes.TrimSpace(raw)) > 0 && !known {
		log.Error("the marks of the store can't be read; whether it is whole can't be judged at this start", "path", name)
	}
	return m, known, nil
}

func readSlot(raw []byte) (s marked, ok bool) {
	sum, body, found := bytes.Cut(bytes.TrimSpace(raw), []byte(" "))
	if !found || string(sum) != checksum(body) || json.Unmarshal(body, &s) != nil {
		return s, false
	}
	if s.Last == nil {
		s.Last = map[string]uint64{}
	}
	return s, true
}

func checksum(body []byte) string { return fmt.Sprintf("%08x", crc32.ChecksumIEEE(body)) }

// met notes that a stream has acknowledged a sequence.
func (m *marks) met(stream string, seq uint64) {
	m.mu.Lock()
	grew := seq > m.state.Last[stream]
	if grew {
		m.state.Last[stream], m.dirty = seq, true
	}
	m.mu.Unlock()
	if grew {
		m.soon.Soon()
	}
}

// ledger notes the ledger's identity and how many of its sequences hold no gift.
func (m *marks) ledger(id string, holes uint64) {
	m.mu.Lock()
	m.state.Ledger, m.state.Holes, m.dirty = id, holes, true
	m.mu.Unlock()
	m.soon.Soon()
}

// ended notes where the ledger ends, unless that was noted within a day. anew forgets what was noted before.
func (m *marks) ended(now time.Time, seq uint64, anew bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if anew {
		m.state.Days = nil
	}
	days := m.state.Days
	if n := len(days); n > 0 && now.Sub(time.Unix(days[n-1].At, 0)).Abs() < 24*time.Hour {
		return
	}
	days = append(slices.Clone(days), day{now.Unix(), seq}) // a reader may hold the old ones
	m.state.Days, m.dirty = days[max(0, len(days)-daysKept):], true
	m.soon.Soon()
}

// revoked notes the name of the stream of what is revoked.
func (m *marks) revoked(name string) {
	m.mu.Lock()
	changed := m.state.Revoked != name
	m.state.Revoked, m.dirty = name, m.dirty || changed
	m.mu.Unlock()
	if changed {
		m.soon.Soon()
	}
}

func (m *marks) last(stream string) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state.Last[stream]
}

func (m *marks) read() marked {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.state
	s.Last = maps.Clone(s.Last)
	return s
}

// keep writes what is new until ctx ends. It is the one writer.
func (m *marks) keep(ctx context.Context) {
	var synced time.Time
	tick := time.NewTicker(marksSync)
	defer tick.Stop()
	for {
		if wrote := m.write(); wrote && time.Since(synced) >= marksSync {
			m.sync()
			synced = time.Now()
		}
		select {
		case <-m.soon:
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// write puts the state into the older slot.
func (m *marks) write() (wrote bool) {
	m.mu.Lock()
	if !m.dirty || m.file == nil {
		m.mu.Unlock()
		return false
	}
	m.dirty = false
	m.state.Turn++
	turn := m.state.Turn
	body, err := json.Marshal(m.state)
	m.mu.Unlock()
	if err == nil && len(body) > slotBytes-16 {
		err = fmt.Errorf("%d bytes do not fit", len(body))
	}
	if err == nil {
		slot := bytes.Repeat([]byte{' '}, slotBytes)
		copy(slot, checksum(body)+" "+string(body))
		_, err = m.file.WriteAt(slot, int64(turn%slots)*slotBytes)
	}
	if err != nil {
		m.log.Error("the marks of the store are not written", "err", err)
		m.mu.Lock()
		m.dirty = true
		m.mu.Unlock()
	}
	return err == nil
}

func (m *marks) sync() {
	if err := m.file.Sync(); err != nil {
		m.log.Error("the marks of the store are not on disk", "err", err)
	}
}

// close writes the rest; keep has ended.
func (m *marks) close() {
	if m.file == nil {
		return
	}
	m.write()
	m.sync()
	_ = m.file.Close() // it was synced
}
