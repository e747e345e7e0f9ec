package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/url"
	"time"
)

// Settler reads each room's ledger by seq, holds it against the wallet, and adds up what the room has earned.
type Settler struct {
	Wallet *Wallet
	API    string // http://host:port/api/v1
	Token  func() (string, error)
}

// Run settles every now and then until ctx ends.
func (s *Settler) Run(ctx context.Context, every time.Duration) {
	for {
		select {
		case <-time.After(every):
			if err := s.All(ctx); err != nil && ctx.Err() == nil {
				log.Printf("settling: %v", err)
			}
		case <-ctx.Done():
			return
		}
	}
}

// All settles every room that has a gift.
func (s *Settler) All(ctx context.Context) error {
	rows, err := s.Wallet.db.QueryContext(ctx, `SELECT DISTINCT room FROM gifts WHERE state = 'confirmed'`)
	if err != nil {
		return err
	}
	var rooms []string
	for rows.Next() {
		var room string
		if err := rows.Scan(&room); err != nil {
			return err
		}
		rooms = append(rooms, room)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return err
	}
	for _, room := range rooms {
		if err := s.room(ctx, room); err != nil {
			return fmt.Errorf("room %s: %w", room, err)
		}
	}
	return nil
}

// page is an answer of GET /rooms/{room}/gifts.
type page struct {
	Ledger string `json:"ledger"`
	Gifts  []struct {
		Seq  int64 `json:"seq"`
		Paid *struct {
			Attempt int64 `json:"attempt"`
		} `json:"paid"` // null: this back end has sent it itself
	} `json:"gifts"`
}

func (s *Settler) room(ctx context.Context, room string) error {
	var ledger string
	var seq int64
	err := s.Wallet.db.QueryRowContext(ctx, `SELECT ledger, seq FROM settled WHERE room = ?`, room).Scan(&ledger, &seq)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	for {
		p, err := s.read(ctx, room, ledger, seq)
		if err != nil || len(p.Gifts) == 0 {
			return err
		}
		if err := s.take(ctx, room, p); err != nil {
			return err
		}
		ledger, seq = p.Ledger, p.Gifts[len(p.Gifts)-1].Seq
	}
}

// take books a page and moves the room's place on, both or neither, so that no gift counts twice.
func (s *Settler) take(ctx context.Context, room string, p page) error {
	tx, err := s.Wallet.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	var earned int64
	for _, g := range p.Gifts {
		if g.Paid == nil {
			continue
		}
		var amount, seq int64
		var state string
		err := tx.QueryRow(`SELECT amount, state, seq FROM gifts WHERE room = ? AND attempt = ?`, room, g.Paid.Attempt).Scan(&amount, &state, &seq)
		switch {
		case err != nil:
			return fmt.Errorf("gift %d: attempt %d: %w", g.Seq, g.Paid.Attempt, err)
		case state == "reserved": // its confirm is on the way
			return fmt.Errorf("gift %d is not confirmed yet", g.Seq)
		case state != "confirmed" || seq != g.Seq:
			log.Printf("room %s: gift %d is %s as %d here", room, g.Seq, state, seq) // people must look at this; it never happens
		}
		earned += amount
	}
	last := p.Gifts[len(p.Gifts)-1].Seq
	if _, err := tx.Exec(`INSERT INTO settled VALUES (?, ?, ?, ?)
		ON CONFLICT (room) DO UPDATE SET ledger = excluded.ledger, seq = excluded.seq, earned = earned + excluded.earned`, room, p.Ledger, last, earned); err != nil {
		return err
	}
	return tx.Commit()
}

func (s *Settler) read(ctx context.Context, room, ledger string, after int64) (p page, err error) {
	token, err := s.Token()
	if err != nil {
		return p, err
	}
	at := fmt.Sprintf("%s/rooms/%s/gifts?limit=1000&after=%d&ledger=%s", s.API, url.PathEscape(room), after, url.QueryEscape(ledger))
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return p, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return p, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK { // 409: the ledger is another one, and a person must look at it
		return p, fmt.Errorf("HTTP status %d", res.StatusCode)
	}
	return p, json.NewDecoder(res.Body).Decode(&p)
}
