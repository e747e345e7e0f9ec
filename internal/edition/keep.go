package edition

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// kept is the copy of the last good edition, for a start without the store.
type kept struct {
	Version uint64          `json:"version"`
	Time    time.Time       `json:"time"`
	Payload json.RawMessage `json:"payload"`
}

// keep sees to the copy being of r or of a newer edition. That it fails is logged and no more: the edition is in force and in the store.
//
// Editions come here from whoever put them in force, at the same time and in any order. One at a time writes; what comes meanwhile is
// left to the one who does, and an older one never replaces a newer.
func (k *Keeper[E, P]) keep(r Record) {
	if k.cfg.Keep == "" {
		return
	}
	k.copying.Lock()
	defer k.copying.Unlock()
	if r.Version <= k.newest.Version {
		return
	}
	k.newest = r
	if k.copies {
		return
	}
	k.copies = true
	for written := uint64(0); written < k.newest.Version; {
		r := k.newest
		k.copying.Unlock()
		if err := writeKept(k.cfg.Keep, kept{r.Version, r.Time, r.Payload}); err != nil {
			k.cfg.Log.Warn(k.cfg.Name+": the last good edition could not be kept", "err", err)
		}
		k.copying.Lock()
		written = r.Version
	}
	k.copies = false
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
func (k *Keeper[E, P]) restoreKept() {
	if k.cfg.Keep == "" {
		return
	}
	raw, err := os.ReadFile(k.cfg.Keep)
	if os.IsNotExist(err) {
		return
	}
	var is kept
	if err == nil {
		err = json.Unmarshal(raw, &is)
	}
	if err != nil {
		k.cfg.Log.Warn(k.cfg.Name+": the kept edition can't be read", "err", err)
		return
	}
	k.take(Record{Version: is.Version, Payload: is.Payload, Time: is.Time})
}
