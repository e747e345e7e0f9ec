package main

import (
	"context"
	"encoding/json"
)

// Batch is what a webhook brings: events in the order of each room, at least once.
type Batch struct {
	Events []struct {
		ID    string          `json:"id"`
		Kind  string          `json:"kind"`
		Room  string          `json:"room"`
		Time  int64           `json:"time"` // Unix ms
		Event json.RawMessage `json:"event"`
	} `json:"events"`
}

// Take keeps events, each once, before liveroom is told that they were taken.
func (w *Wallet) Take(ctx context.Context, b Batch) error {
	tx, err := w.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	for _, e := range b.Events {
		if _, err := tx.Exec(`INSERT OR IGNORE INTO events VALUES (?, ?, ?, ?, ?)`, e.ID, e.Kind, e.Room, e.Time, string(e.Event)); err != nil {
			return err
		}
	}
	return tx.Commit()
}
