package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"liveroom/loadtest/internal/client"
)

// gifts asks how many gifts are acknowledged, how soon, and whether the ledger has them: exactly those where nothing is killed, and
// with -kill, where the node ends by kill -9 in the middle, at least those. In the same run a file is written and synced for each gift.
func gifts(ctx context.Context, b *bench) error {
	if b.fleet == nil || len(b.fleet.nodes) != 1 {
		return fmt.Errorf("gifts looks into the ledger of a node of its own: give -spawn 1")
	}
	alone, err := b.syncsAlone(ctx)
	if err != nil {
		return err
	}
	var m *measured
	err = b.audience(ctx, func(c *client.Crowd) error {
		return b.around(ctx, func() (err error) {
			m, err = b.steadily(ctx, c.Live(), func(p *plan) {
				if b.o.kill {
					p.meanwhile = func(ctx context.Context, _ time.Time) {
						if client.WaitFor(ctx, b.o.warmup+b.o.duration/2) == nil {
							b.fleet.nodes[0].Kill()
						}
					}
				}
			})
			return err
		})
	})
	if err != nil {
		return err
	}
	if b.o.kill {
		n, err := b.fleet.launch(ctx, nodeName(0))
		if err != nil {
			return err
		}
		b.o.urls = []string{n.url}
	}
	v, spent := b.result.Values, b.o.duration
	if b.o.kill {
		spent /= 2
	}
	f := m.classes[client.Gift.String()]
	// Until the last answer: it may come long after the last gift was sent.
	v["gifts_per_second"], v["syncs_per_second"] = float64(f.Admitted)/(spent.Seconds()+v["gift_ack_max"]), alone
	v["gifts_per_sync"] = v["gifts_per_second"] / alone
	b.result.Note("%.0f gifts/s were acknowledged; a file that is written and synced for each takes %.0f/s: %.1f times as many", v["gifts_per_second"], alone, v["gifts_per_sync"])
	return b.compareLedger(ctx, m.trial)
}

// syncsAlone is how often in a second a gift's bytes are written and synced, one after the other, beside the node's data.
func (b *bench) syncsAlone(ctx context.Context) (float64, error) {
	b.progress.line("gifts: a sync for each")
	f, err := os.Create(filepath.Join(b.temp, "synced"))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	body, n, start := make([]byte, 300), 0, time.Now()
	for ; time.Since(start) < 2*time.Second && ctx.Err() == nil; n++ {
		if _, err := f.Write(body); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
		time.Sleep(b.o.syncDelay)
	}
	return float64(n) / time.Since(start).Seconds(), ctx.Err()
}

// compareLedger reads all rooms' gifts and compares them with what was acknowledged.
func (b *bench) compareLedger(ctx context.Context, t *client.Trial) error {
	b.progress.line("gifts: reading the ledger")
	acked, found, beyond := t.StoredGifts(), 0, 0
	for _, room := range b.roomNames() {
		for after := uint64(0); ; {
			page, err := b.giftsAfter(ctx, room, after)
			if err != nil {
				return err
			}
			if len(page) == 0 {
				break
			}
			for _, g := range page {
				after = g.Seq
				if acked[g.Seq] {
					found++
				} else {
					beyond++
				}
			}
		}
	}
	b.result.Values["ledger_missing"], b.result.Values["ledger_beyond"] = float64(len(acked)-found), float64(beyond)
	b.result.Note("the ledger has %d gifts: %d of %d that were acknowledged, and %d of which nobody was told", found+beyond, found, len(acked), beyond)
	return nil
}

type ledgerGift struct {
	Seq uint64 `json:"seq"`
}

func (b *bench) giftsAfter(ctx context.Context, room string, after uint64) ([]ledgerGift, error) {
	token, err := b.tokens.Admin()
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s/api/v1/rooms/%s/gifts?limit=1000&after=%d", b.o.urls[0], url.PathEscape(room), after), nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	var page struct {
		Gifts []ledgerGift `json:"gifts"`
	}
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("gifts of %s: %s", room, answer.Status)
	}
	err = json.NewDecoder(answer.Body).Decode(&page)
	return page.Gifts, err
}
