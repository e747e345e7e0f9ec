package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/coder/websocket"
)

// event is one event as a client sees it.
type event map[string]any

func (e event) kind() string { s, _ := e["ev"].(string); return s }

func (e event) num(field string) int64 { f, _ := e[field].(float64); return int64(f) }

func (e event) str(field string) string { s, _ := e[field].(string); return s }

func (e event) in(field string) event { m, _ := e[field].(map[string]any); return m }

// client is one socket of a test.
type client struct {
	t       *testing.T
	ws      *websocket.Conn
	pending []event
	welcome event
}

// dial opens a socket without a hello.
func dial(t *testing.T, url string, opts *websocket.DialOptions) *client {
	t.Helper()
	if opts == nil {
		opts = &websocket.DialOptions{Subprotocols: []string{"liveroom.v1"}}
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ws, _, err := websocket.Dial(ctx, strings.Replace(url, "http", "ws", 1)+"/ws", opts)
	if err != nil {
		t.Fatal(err)
	}
	ws.SetReadLimit(1 << 20)
	t.Cleanup(func() { ws.CloseNow() })
	return &client{t: t, ws: ws}
}

// join says hello and waits for the welcome, and comes again as it is told to where the server is too busy for newcomers.
// token is "" for a guest.
func join(t *testing.T, url, room, token string, more ...string) (c *client) {
	t.Helper()
	await(t, "a seat", func() bool {
		c = dial(t, url, nil)
		c.send(fmt.Sprintf(`{"op":"hello","id":"h","room":%q,"token":%q%s}`, room, token, strings.Join(more, "")))
		for {
			events, err := c.read()
			switch {
			case websocket.CloseStatus(err) == 4003:
				return false
			case err != nil:
				t.Fatalf("while waiting for a welcome: %v", err)
			}
			for i, e := range events {
				if e.kind() == "welcome" {
					c.welcome, c.pending = e, events[i+1:]
					return true
				}
			}
		}
	})
	return c
}

func (c *client) send(frame string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	if err := c.ws.Write(ctx, websocket.MessageText, []byte(frame)); err != nil {
		c.t.Fatalf("send: %v", err)
	}
}

// tell sends a frame to a server that may be dying.
func (c *client) tell(frame string) {
	_ = c.ws.Write(c.t.Context(), websocket.MessageText, []byte(frame))
}

// wait returns the next event that is wanted and drops those before it.
func (c *client) wait(what string, wanted func(event) bool) event {
	c.t.Helper()
	for {
		for i, e := range c.pending {
			if wanted(e) {
				c.pending = c.pending[i+1:]
				return e
			}
		}
		c.pending = nil
		events, err := c.read()
		if err != nil {
			c.t.Fatalf("while waiting for %s: %v", what, err)
		}
		c.pending = events
	}
}

// read returns the next frame's events.
func (c *client) read() ([]event, error) {
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	_, frame, err := c.ws.Read(ctx)
	if err != nil {
		return nil, err
	}
	var events []event
	if err := json.Unmarshal(frame, &events); err != nil {
		return nil, fmt.Errorf("frame %s: %w", frame, err)
	}
	return events, nil
}

// ask sends a frame and returns its ack, and keeps what else arrives meanwhile.
func (c *client) ask(op, fields string) event {
	c.t.Helper()
	return c.askAs(rand.Text()[:12], op, fields)
}

func (c *client) askAs(id, op, fields string) event {
	c.t.Helper()
	c.send(fmt.Sprintf(`{"op":%q,"id":%q%s}`, op, id, fields))
	var others []event
	ack := c.wait("ack of "+op, func(e event) bool {
		if e.kind() == "ack" && e.str("id") == id {
			return true
		}
		others = append(others, e)
		return false
	})
	c.pending = append(others, c.pending...)
	return ack
}

// askUntil asks again, under the same id, as long as the answer is that it can't be judged now (503), as pages do.
func (c *client) askUntil(id, op, fields string) (ack event) {
	c.t.Helper()
	await(c.t, "a verdict on "+op, func() bool {
		ack = c.askAs(id, op, fields)
		return ack.num("code") != 503
	})
	return ack
}

// closed reads until the socket is closed and returns the close code and its reason.
func (c *client) closed() (code int, reason event) {
	c.t.Helper()
	for {
		_, err := c.read()
		if err == nil {
			continue
		}
		var ce websocket.CloseError
		if !errors.As(err, &ce) {
			return 1006, nil
		}
		_ = json.Unmarshal([]byte(ce.Reason), &reason)
		return int(ce.Code), reason
	}
}
