package hooktest

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"sync"
	"time"
)

// Row is what a wallet knows of one gift.
type Row struct {
	Key     string `json:"key"`
	Attempt uint64 `json:"attempt"`
	State   string `json:"state"` // reserved, confirmed, cancelled
	User    string `json:"user"`
	Count   int    `json:"count"`
	Amount  int64  `json:"amount"`
	Seq     uint64 `json:"seq,omitempty"`
}

// Wallet keeps users' money in a file: a line for each change, on disk before it is answered. A user has Funds to begin with.
type Wallet struct {
	Secret string
	Funds  int64
	// Faults is the share of calls that go wrong, half of them before the wallet has acted and half after; Slow is how long
	// those take that only are late.
	Faults float64
	Slow   time.Duration

	mu    sync.Mutex
	file  *os.File
	rows  map[string]Row
	wrong []string
}

// Open reads the file, or begins one.
func (w *Wallet) Open(name string) error {
	w.rows = map[string]Row{}
	raw, err := os.Open(name)
	if err == nil {
		defer raw.Close()
		for lines := bufio.NewScanner(raw); lines.Scan(); {
			var r Row
			if json.Unmarshal(lines.Bytes(), &r) == nil { // half a line was never answered
				w.rows[r.Key] = r
			}
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	w.file, err = os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err == nil {
		_, err = w.file.WriteString("\n") // ends what a kill cut short
	}
	return err
}

// Close lets go of the file.
func (w *Wallet) Close() error { return w.file.Close() }

func (w *Wallet) put(r Row) {
	line, err := json.Marshal(r)
	if err == nil {
		_, err = w.file.Write(append(line, '\n'))
	}
	if err == nil {
		err = w.file.Sync()
	}
	if err != nil {
		panic(err)
	}
	w.rows[r.Key] = r
}

// question is what the wallet reads of a call.
type question struct {
	Type string `json:"type"`
	Data struct {
		Row
		User struct {
			ID string `json:"id"`
		} `json:"user"`
	} `json:"data"`
}

// Answer does what is asked, once however often it is asked.
func (w *Wallet) answer(body []byte) (any, error) {
	var q question
	if err := json.Unmarshal(body, &q); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch q.Type {
	case "join.check":
		return admission(q.Data.User.ID), nil
	case "danmaku.check":
		return verdicts(body)
	}
	want := q.Data.Row
	want.User = q.Data.User.ID
	have, known := w.rows[want.Key]
	done := map[string]bool{"ok": true}
	switch q.Type {
	case "ping":
		return done, nil
	case "gift.reserve":
		return w.reserve(have, known, want), nil
	case "gift.confirm":
		switch {
		case have.State == "confirmed" && have.Seq == want.Seq:
		case have.State == "reserved" && have.Attempt == want.Attempt:
			have.State, have.Seq = "confirmed", want.Seq
			w.put(have)
		default:
			w.wrong = append(w.wrong, fmt.Sprintf("confirm %+v where there is %+v", want, have))
		}
		return done, nil
	case "gift.cancel":
		switch {
		case known && have.Attempt > want.Attempt:
		case have.State == "confirmed" && have.Attempt == want.Attempt:
			w.wrong = append(w.wrong, fmt.Sprintf("cancel %+v where there is %+v", want, have))
		case have.State == "confirmed":
		default:
			want.State = "cancelled"
			w.put(want)
		}
		return done, nil
	}
	return nil, fmt.Errorf("unknown type %q", q.Type)
}

func (w *Wallet) reserve(have Row, known bool, want Row) any {
	allow := func(seq uint64) any {
		return map[string]any{"allow": true, "seq": seq, "ref": "w-" + fmt.Sprint(want.Attempt)}
	}
	refuse := func(reason, text string) any { return map[string]any{"allow": false, "reason": reason, "text": text} }
	switch {
	case have.State == "confirmed":
		return allow(have.Seq)
	case known && have.Attempt > want.Attempt, have.State == "cancelled" && have.Attempt == want.Attempt:
		return refuse("declined", "this attempt is over")
	case have.State == "reserved" && have.Attempt == want.Attempt:
		return allow(0)
	case have.State == "reserved":
		w.wrong = append(w.wrong, fmt.Sprintf("reserve %+v while there is %+v", want, have))
	case w.spent(want.User)+want.Amount > w.Funds:
		return refuse("insufficient_funds", "please top up")
	}
	want.State = "reserved"
	w.put(want)
	return allow(0)
}

func (w *Wallet) spent(user string) (sum int64) {
	for _, r := range w.rows {
		if r.User == user && r.State != "cancelled" {
			sum += r.Amount
		}
	}
	return sum
}

// Rows returns all that it knows, and what it was told that contradicts it.
func (w *Wallet) Rows() (rows []Row, wrong []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.rows {
		rows = append(rows, r)
	}
	return rows, w.wrong
}

// ServeHTTP answers hooks by POST, and what it knows by GET.
func (w *Wallet) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		rows, wrong := w.Rows()
		json.NewEncoder(rw).Encode(map[string]any{"rows": rows, "wrong": wrong})
		return
	}
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = Verify(r.Header, body, time.Now(), w.Secret)
	}
	if err != nil {
		http.Error(rw, err.Error(), http.StatusUnauthorized)
		return
	}
	fault := rand.Float64() / max(w.Faults, 1e-9)
	w.trouble(r, fault, 0)
	said, err := w.answer(body)
	if err != nil {
		http.Error(rw, err.Error(), http.StatusBadRequest)
		return
	}
	w.trouble(r, fault, 0.5)
	json.NewEncoder(rw).Encode(said)
}

// trouble makes a call go wrong by a number below 1: from is where its share begins.
func (w *Wallet) trouble(r *http.Request, fault, from float64) {
	switch {
	case fault < from || fault >= from+0.5:
	case fault < from+0.2: // cut
		panic(http.ErrAbortHandler)
	default: // late, mostly too late
		select {
		case <-time.After(w.Slow):
		case <-r.Context().Done():
			if from == 0 {
				panic(http.ErrAbortHandler)
			}
		}
	}
}

// Serve runs a wallet as a process of its own, until it is killed: address, file and secret, and the share of faults.
func Serve(address, file, secret string, faults float64, slow time.Duration) error {
	w := &Wallet{Secret: secret, Funds: 1 << 40, Faults: faults, Slow: slow}
	if err := w.Open(file); err != nil {
		return err
	}
	ln, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	return http.Serve(ln, w)
}
