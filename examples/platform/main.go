// Command platform is a sample back end of a live platform: it signs its users' tokens, says who comes into a room as what and what is shown there,
// pays for gifts from a wallet (SQLite), and settles with the rooms by the gift ledger. docs/integrate.md goes through it step by step.
//
//	platform -server ../../bin/liveserver     starts liveroom as well; open the address that is printed
//	platform -liveroom http://host:8080       beside a liveroom that runs
package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"html/template"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/golang-jwt/jwt/v5"
	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

type options struct {
	addr, liveroom, server, dir string
	authSecret, hookSecret      string // what we share with liveroom: for tokens, and for hooks
}

func main() {
	o := options{authSecret: os.Getenv("PLATFORM_AUTH_SECRET"), hookSecret: os.Getenv("PLATFORM_HOOK_SECRET")}
	flag.StringVar(&o.addr, "addr", "127.0.0.1:8090", "where this back end listens")
	flag.StringVar(&o.liveroom, "liveroom", "http://localhost:8080", "where viewers find liveroom")
	flag.StringVar(&o.server, "server", "", "a liveserver to start as well, with secrets made for the occasion")
	flag.StringVar(&o.dir, "data-dir", "data", "where wallet.db is, and the data of the server that is started")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, o options) error {
	if o.server != "" {
		o.authSecret, o.hookSecret = rand.Text()+rand.Text(), newSecret()
	}
	if o.authSecret == "" || o.hookSecret == "" {
		return errors.New("set PLATFORM_AUTH_SECRET (liveroom's auth.secret) and PLATFORM_HOOK_SECRET (one of its hooks.secrets), or say -server")
	}
	if err := os.MkdirAll(o.dir, 0o750); err != nil {
		return err
	}
	wallet, err := OpenWallet(filepath.Join(o.dir, "wallet.db"))
	if err != nil {
		return err
	}
	defer wallet.Close()
	verify, err := webhooks.NewWebhook(o.hookSecret)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("POST /hooks", hooks(wallet, verify))
	mux.Handle("GET /enter", enter(wallet, o))
	mux.Handle("GET /{$}", home(wallet))
	ln, err := net.Listen("tcp", o.addr)
	if err != nil {
		return err
	}
	site := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	settler := &Settler{Wallet: wallet, API: strings.TrimSuffix(o.liveroom, "/") + "/api/v1", Token: func() (string, error) { return sign(o, "settler", "Settler", "service") }}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 2)
	go func() { done <- site.Serve(ln) }()
	if o.server != "" {
		go func() { done <- liveserver(ctx, o, "http://"+ln.Addr().String()) }()
	}
	go settler.Run(ctx, 5*time.Second)
	fmt.Printf("\nThe platform is up. Come in as two people, in two windows:\n\n  http://%s/enter?user=ann\n  http://%s/enter?user=bob\n\nAccounts and earnings: http://%s/\n\n", ln.Addr(), ln.Addr(), ln.Addr())
	select {
	case <-ctx.Done():
		if o.server != "" {
			return <-done // the server drains, and asks us what it has to ask until it is gone
		}
		return site.Close()
	case err := <-done:
		return err
	}
}

// newSecret is one of Standard Webhooks.
func newSecret() string {
	key := make([]byte, 32)
	rand.Read(key)
	return "whsec_" + base64.StdEncoding.EncodeToString(key)
}

// liveserver runs liveroom with this back end as its platform. Secrets go by the environment, which no list of processes shows.
func liveserver(ctx context.Context, o options, platform string) error {
	at, err := url.Parse(o.liveroom)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, o.server, "-addr", ":"+cmp.Or(at.Port(), "80"), "-data-dir", o.dir, "-log-format", "text", "-drain-timeout", "1s",
		"-gifts-authority", "hook", "-protocol-attributes", "level",
		"-hooks-gift-url", platform+"/hooks", "-hooks-join-url", platform+"/hooks", "-hooks-danmaku-url", platform+"/hooks",
		"-webhooks", "[{name: books, url: '"+platform+"/hooks'}]")
	cmd.Env = append(os.Environ(), "LIVEROOM_AUTH_SECRET="+o.authSecret, "LIVEROOM_HOOKS_SECRETS="+o.hookSecret)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 20 * time.Second
	err = cmd.Run()
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("liveserver ended: %w", err)
}

// sign makes a token that liveroom takes. Here somebody has logged in; a real platform knows by then who it is.
func sign(o options, user, name, role string) (string, error) {
	return jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{"sub": user, "name": name, "role": role, "exp": time.Now().Add(time.Hour).Unix()}).SignedString([]byte(o.authSecret))
}

// house is what everybody is given to begin with.
const house = 1000

// enter sends a user into the room, with a token in the fragment, which browsers keep to themselves.
func enter(w *Wallet, o options) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		user := cmp.Or(r.FormValue("user"), "ann")
		if _, err := w.Balance(r.Context(), user, house); err != nil {
			http.Error(rw, err.Error(), http.StatusInternalServerError)
			return
		}
		token, err := sign(o, user, user, "viewer")
		if err != nil {
			http.Error(rw, err.Error(), http.StatusInternalServerError)
			return
		}
		http.Redirect(rw, r, o.liveroom+"/room/demo#token="+token, http.StatusSeeOther)
	}
}

var homePage = template.Must(template.New("").Parse(`<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="2"><title>Platform</title>
<h1>Accounts</h1><table>{{range .Accounts}}<tr><td>{{index . 0}}<td>{{index . 1}}{{end}}</table>
<h1>Earned, as settled by the ledger</h1><table>{{range .Rooms}}<tr><td>{{index . 0}}<td>{{index . 1}}{{end}}</table>
<h1>What happened, as the webhook told</h1><table>{{range .Events}}<tr><td>{{index . 0}}<td>{{index . 1}}{{end}}</table>`))

// home shows what everybody has.
func home(w *Wallet) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		accounts, err := w.list(r.Context(), `SELECT user, balance FROM accounts ORDER BY user`)
		if err == nil {
			var rooms, events [][2]string
			if rooms, err = w.list(r.Context(), `SELECT room, earned FROM settled ORDER BY room`); err == nil {
				events, err = w.list(r.Context(), `SELECT kind, COUNT(*) FROM events GROUP BY kind ORDER BY kind`)
			}
			if err == nil {
				err = homePage.Execute(rw, map[string]any{"Accounts": accounts, "Rooms": rooms, "Events": events})
			}
		}
		if err != nil {
			log.Printf("home: %v", err)
		}
	}
}

func (w *Wallet) list(ctx context.Context, query string) (out [][2]string, err error) {
	rows, err := w.db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var one [2]string
		if err := rows.Scan(&one[0], &one[1]); err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, rows.Err()
}
