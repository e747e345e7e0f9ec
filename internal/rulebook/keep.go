package rulebook

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// kept is the copy of the last good set, for a start without the store.
type kept struct {
	Version uint64          `json:"version"`
	Time    time.Time       `json:"time"`
	Payload json.RawMessage `json:"payload"`
}

// keep writes the copy. That it fails is logged and no more: the set is in force and in the store.
//
// Sets come here from whoever put them in force, at the same time and in any order; an older one never replaces a newer.
func (b *Book) keep(r Record) {
	if b.cfg.Keep == "" {
		return
	}
	b.keeping.Lock()
	defer b.keeping.Unlock()
	if r.Version <= b.kept {
		return
	}
	if err := writeKept(b.cfg.Keep, kept{r.Version, r.Time, r.Payload}); err != nil {
		b.cfg.Log.Warn("limits: the last good set could not be kept", "err", err)
		return
	}
	b.kept = r.Version
}

// writeKept replaces the file in one step, so that a crash leaves the old one or the new one.
func writeKept(path string, k kept) error {
	raw, err := json.Marshal(k)
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // gone after the rename; what is left otherwise is half a file
	if _, err = f.Write(raw); err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// restoreKept puts the copy in force, when there is one that this server can read.
func (b *Book) restoreKept() {
	if b.cfg.Keep == "" {
		return
	}
	raw, err := os.ReadFile(b.cfg.Keep)
	if os.IsNotExist(err) {
		return
	}
	var k kept
	if err == nil {
		err = json.Unmarshal(raw, &k)
	}
	if err != nil {
		b.cfg.Log.Warn("limits: the kept set can't be read", "err", err)
		return
	}
	b.take(Record{Version: k.Version, Payload: k.Payload, Time: k.Time})
}
