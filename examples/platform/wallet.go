package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	_ "modernc.org/sqlite"
)

// Wallet keeps accounts and what each gift took from them.
type Wallet struct{ db *sql.DB }

// A gift's row is all that the three hooks need: which attempt holds or held money, and what became of it. Rows are never deleted: a
// cancelled attempt must not reserve later, and a gift that is paid for must not be paid again.
const schema = `
CREATE TABLE IF NOT EXISTS accounts (user TEXT PRIMARY KEY, balance INTEGER NOT NULL CHECK (balance >= 0));
CREATE TABLE IF NOT EXISTS gifts (
	key TEXT PRIMARY KEY, attempt INTEGER NOT NULL, state TEXT NOT NULL CHECK (state IN ('reserved', 'confirmed', 'cancelled')),
	room TEXT NOT NULL, user TEXT NOT NULL, gift TEXT NOT NULL, count INTEGER NOT NULL, amount INTEGER NOT NULL, seq INTEGER NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS events (id TEXT PRIMARY KEY, kind TEXT NOT NULL, room TEXT NOT NULL, time INTEGER NOT NULL, event TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS settled (room TEXT PRIMARY KEY, ledger TEXT NOT NULL, seq INTEGER NOT NULL, earned INTEGER NOT NULL);`

// OpenWallet opens the file. Every change is on disk before it is answered (synchronous FULL).
func OpenWallet(file string) (*Wallet, error) {
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(5000)&_txlock=immediate")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1) // SQLite writes one by one anyway
	_, err = db.Exec(schema)
	return &Wallet{db}, err
}

func (w *Wallet) Close() error { return w.db.Close() }

// Gift is what a hook says of one.
type Gift struct {
	Key     string `json:"key"`
	Attempt int64  `json:"attempt"`
	Room    string `json:"room"`
	User    struct {
		ID string `json:"id"`
	} `json:"user"`
	Gift   string `json:"gift"`
	Count  int64  `json:"count"`
	Amount int64  `json:"amount"`
	Seq    int64  `json:"seq"`
}

// Verdict answers a reserve.
type Verdict struct {
	Allow  bool   `json:"allow"`
	Ref    string `json:"ref,omitempty"`
	Seq    int64  `json:"seq,omitempty"`
	Reason string `json:"reason,omitempty"`
	Text   string `json:"text,omitempty"`
}

// in runs f in one transaction, with what is known of the key; attempt is 0 when nothing is.
func (w *Wallet) in(ctx context.Context, key string, f func(tx *sql.Tx, attempt int64, state string, amount, seq int64) error) error {
	tx, err := w.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	var attempt, amount, seq int64
	var state string
	err = tx.QueryRow(`SELECT attempt, state, amount, seq FROM gifts WHERE key = ?`, key).Scan(&attempt, &state, &amount, &seq)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if err := f(tx, attempt, state, amount, seq); err != nil {
		return err
	}
	return tx.Commit()
}

func put(tx *sql.Tx, g Gift, state string) error {
	_, err := tx.Exec(`INSERT INTO gifts (key, attempt, state, room, user, gift, count, amount) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (key) DO UPDATE SET attempt = excluded.attempt, state = excluded.state, amount = excluded.amount`,
		g.Key, g.Attempt, state, g.Room, g.User.ID, g.Gift, g.Count, g.Amount)
	return err
}

// Reserve takes the money out of the account, once for each attempt.
func (w *Wallet) Reserve(ctx context.Context, g Gift) (v Verdict, err error) {
	err = w.in(ctx, g.Key, func(tx *sql.Tx, attempt int64, state string, _, seq int64) error {
		switch {
		case state == "confirmed": // paid for already: nothing is taken now
			v = Verdict{Allow: true, Seq: seq}
			return nil
		case state == "reserved" && attempt == g.Attempt: // asked again: the same answer
			v = Verdict{Allow: true, Ref: ref(g)}
			return nil
		case attempt >= g.Attempt: // it comes after its own cancel, or after a later attempt
			v = Verdict{Reason: "declined", Text: "this attempt is over"}
			return nil
		case state == "reserved":
			return fmt.Errorf("attempt %d of %s while %d is open: liveroom never does that", g.Attempt, g.Key, attempt)
		}
		took, err := tx.Exec(`UPDATE accounts SET balance = balance - ? WHERE user = ? AND balance >= ?`, g.Amount, g.User.ID, g.Amount)
		if err != nil {
			return err
		}
		if n, err := took.RowsAffected(); err != nil || n == 0 {
			v = Verdict{Reason: "insufficient_funds", Text: "please top up"}
			return err
		}
		v = Verdict{Allow: true, Ref: ref(g)}
		return put(tx, g, "reserved")
	})
	return v, err
}

// ref is the platform's own name for a payment, which the ledger keeps with the gift.
func ref(g Gift) string { return fmt.Sprintf("p-%d", g.Attempt) }

// Confirm says that the gift is stored, under seq.
func (w *Wallet) Confirm(ctx context.Context, g Gift) error {
	return w.in(ctx, g.Key, func(tx *sql.Tx, attempt int64, state string, _, seq int64) error {
		if state == "confirmed" && seq == g.Seq {
			return nil
		}
		if state != "reserved" || attempt != g.Attempt {
			return fmt.Errorf("confirm of attempt %d of %s, which is %s by attempt %d", g.Attempt, g.Key, state, attempt)
		}
		_, err := tx.Exec(`UPDATE gifts SET state = 'confirmed', seq = ? WHERE key = ?`, g.Seq, g.Key)
		return err
	})
}

// Cancel gives back what the attempt took, and remembers that it is over: its reserve may still be under way.
func (w *Wallet) Cancel(ctx context.Context, g Gift) error {
	return w.in(ctx, g.Key, func(tx *sql.Tx, attempt int64, state string, amount, _ int64) error {
		if attempt > g.Attempt || state == "confirmed" {
			return nil
		}
		if state == "reserved" {
			if _, err := tx.Exec(`UPDATE accounts SET balance = balance + ? WHERE user = ?`, amount, g.User.ID); err != nil {
				return err
			}
		}
		return put(tx, g, "cancelled")
	})
}

// TopUp makes an account, or adds to it.
func (w *Wallet) TopUp(ctx context.Context, user string, amount int64) error {
	_, err := w.db.ExecContext(ctx, `INSERT INTO accounts VALUES (?, ?) ON CONFLICT (user) DO UPDATE SET balance = balance + excluded.balance`, user, amount)
	return err
}

// Balance is what is left; an account that is not there is made with a gift of the house.
func (w *Wallet) Balance(ctx context.Context, user string, house int64) (left int64, err error) {
	if _, err := w.db.ExecContext(ctx, `INSERT INTO accounts VALUES (?, ?) ON CONFLICT DO NOTHING`, user, house); err != nil {
		return 0, err
	}
	return left, w.db.QueryRowContext(ctx, `SELECT balance FROM accounts WHERE user = ?`, user).Scan(&left)
}
