package api

import (
	"cmp"
	"context"
	"encoding/csv"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"liveroom/internal/journal"
	"liveroom/protocol"
	"liveroom/room"
	"liveroom/room/people"
)

// Bounds of a summary: a show of more is told as far as they go, and says so.
const (
	summaryGifts  = 50_000 // records of the ledger that are read
	summaryGivers = 100    // givers who are named, those of most value
	summaryTime   = 10 * time.Second
)

// summary is a show, once it is over or so far.
type summary struct {
	Room       string           `json:"room"`
	Title      string           `json:"title"`
	DurationMS int64            `json:"duration_ms"`
	Show       shownShow        `json:"show"`
	Danmaku    int              `json:"danmaku"`
	ByMinute   []int            `json:"danmaku_by_minute"`
	Gifts      summedGifts      `json:"gifts"`
	Acts       []decided        `json:"acts"`    // of the audit, the newest first
	Refused    []people.Refused `json:"refused"` // who was limited by which rule, the most first
	Shows      []int64          `json:"shows"`   // when those began that are remembered, the newest first
}

// summedGifts are a show's gifts. Values are in the catalogue's unit: what was charged, else today's price.
type summedGifts struct {
	Count    int64   `json:"count"`
	Value    int64   `json:"value"`
	Partial  bool    `json:"partial,omitempty"` // there are more than were read, or some are gone from the ledger
	ByGift   []given `json:"by_gift"`
	ByGiver  []given `json:"by_giver"`
	GiverSum int     `json:"givers"`
}

// given are gifts of one kind, or by one giver.
type given struct {
	ID    string `json:"id"`
	Name  string `json:"name,omitempty"`
	Count int64  `json:"count"`
	Value int64  `json:"value"`
}

func (a *API) getSummary(w http.ResponseWriter, r *http.Request, c call) (any, error) {
	began, fault := number(r, "show", 0, 1<<53, 0)
	if fault != nil {
		return nil, fault
	}
	format := r.URL.Query().Get("format")
	if format != "" && format != "json" && format != "csv" {
		return nil, protocol.BadField("format", "json or csv", format)
	}
	s := summary{Room: c.room, Acts: []decided{}, Refused: []people.Refused{}}
	if err := a.asStaff(r, c, func(rm *room.Room) *protocol.Error { s.Title = rm.Summary().Title; return nil }); err != nil {
		return nil, err
	}
	shows, err := a.cfg.Hub.Shows(r.Context(), c.room)
	if err != nil {
		return nil, storeError{fmt.Errorf("read the room's shows: %w", err)}
	}
	i := slices.IndexFunc(shows, func(t people.Told) bool { return began == 0 || t.Begin == int64(began) })
	if i < 0 {
		return nil, &protocol.Error{Reason: protocol.ReasonNotFound, Detail: "show"}
	}
	s.take(shows[i], time.Now().UnixMilli())
	for _, t := range shows {
		s.Shows = append(s.Shows, t.Begin)
	}
	if s.Gifts, err = a.sumGifts(r.Context(), c.room, s.Show.Begin, s.until()); err != nil {
		return nil, err
	}
	acts, _, err := a.entries(r, c, 0, maxListed)
	if err != nil {
		return nil, err
	}
	for _, d := range acts {
		if d.Time >= s.Show.Begin && d.Time <= s.until() {
			s.Acts = append(s.Acts, d)
		}
	}
	if format == "csv" {
		return nil, s.writeCSV(w)
	}
	return s, nil
}

// take takes what was counted. now is Unix ms.
func (s *summary) take(t people.Told, now int64) {
	s.Show = *showOf(t, true)
	s.DurationMS = s.until() - t.Begin
	if t.End == 0 {
		s.DurationMS = max(now-t.Begin, 0)
	}
	for _, m := range t.Minutes {
		s.ByMinute = append(s.ByMinute, m.Danmaku)
		s.Danmaku += m.Danmaku
	}
	s.Refused = append(s.Refused, t.Refused...)
}

// until is when the show ended, in Unix ms; long after now while it goes on.
func (s *summary) until() int64 { return cmp.Or(s.Show.End, 1<<53) }

// sumGifts reads the ledger from the show's beginning to its end.
func (a *API) sumGifts(ctx context.Context, id string, begin, end int64) (summedGifts, error) {
	ctx, cancel := context.WithTimeout(ctx, summaryTime)
	defer cancel()
	sum := summedGifts{}
	at, err := a.cfg.Consumers.Journal.Since(ctx, time.UnixMilli(begin))
	if err != nil {
		return sum, storeError{fmt.Errorf("find the show's gifts: %w", err)}
	}
	kinds, givers := map[string]*given{}, map[string]*given{}
	filter := journal.Filter{Rooms: []string{id}, Kinds: []journal.Kind{journal.Gift}}
	for more := true; more; {
		page, err := a.cfg.Consumers.Journal.Read(ctx, at, filter, maxListed)
		if err != nil {
			return sum, storeError{fmt.Errorf("read the show's gifts: %w", err)}
		}
		at, more = page.Next, page.More
		for _, e := range page.Entries {
			switch {
			case e.Kind == journal.Gap:
				sum.Partial = true
			case e.Time > end:
				more = false
			case sum.Count >= summaryGifts:
				sum.Partial, more = true, false
			default:
				a.sumGift(&sum, e.Event, kinds, givers)
			}
		}
	}
	sum.ByGift, sum.ByGiver, sum.GiverSum = ranked(kinds, len(kinds)), ranked(givers, summaryGivers), len(givers)
	return sum, nil
}

func (a *API) sumGift(sum *summedGifts, event []byte, kinds, givers map[string]*given) {
	g, err := protocol.ParseLoggedGift(event)
	if err != nil {
		sum.Partial = true
		return
	}
	n, name := int64(g.Count), g.Gift.Gift
	value := g.Paid.Charged
	for _, offer := range a.cfg.Catalogue.Current().Gifts {
		if offer.ID == g.Gift.Gift {
			name = offer.Name
			value = cmp.Or(value, offer.Price*n)
		}
	}
	sum.Count++
	sum.Value += value
	add(kinds, given{g.Gift.Gift, name, n, value})
	add(givers, given{g.User.ID, g.User.Name, n, value})
}

func add(to map[string]*given, g given) {
	if old := to[g.ID]; old != nil {
		old.Count, old.Value, old.Name = old.Count+g.Count, old.Value+g.Value, g.Name
		return
	}
	to[g.ID] = &g
}

// ranked are those of most value, the first of them first.
func ranked(all map[string]*given, most int) []given {
	out := make([]given, 0, len(all))
	for _, g := range slices.SortedFunc(maps.Values(all), func(a, b *given) int {
		return cmp.Or(cmp.Compare(b.Value, a.Value), cmp.Compare(b.Count, a.Count), cmp.Compare(a.ID, b.ID))
	}) {
		out = append(out, *g)
	}
	return out[:min(len(out), most)]
}

// writeCSV answers with one table: what a line tells, of whom or what, how many and of what value (RFC 4180).
func (s *summary) writeCSV(w http.ResponseWriter) error {
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	w.Header().Set("Content-Disposition", fmt.Sprintf(`attachment; filename="%s-%d.csv"`, s.Room, s.Show.Begin))
	to := csv.NewWriter(w)
	line := func(what, id, name string, count, value int64) {
		_ = to.Write([]string{what, plain(id), plain(name), strconv.FormatInt(count, 10), strconv.FormatInt(value, 10)}) // Flush tells
	}
	_ = to.Write([]string{"what", "id", "name", "count", "value"})
	line("begin_ms", s.Room, s.Title, s.Show.Begin, 0)
	line("duration_ms", "", "", s.DurationMS, 0)
	line("people", "", "", int64(s.Show.People), 0)
	line("peak", "", "", int64(s.Show.Peak), 0)
	line("danmaku", "", "", int64(s.Danmaku), 0)
	line("gifts", "", "", s.Gifts.Count, s.Gifts.Value)
	for i, n := range s.ByMinute {
		line("danmaku_in_minute", strconv.Itoa(i), "", int64(n), 0)
		line("people_in_minute", strconv.Itoa(i), "", int64(s.Show.Minutes[i]), 0)
	}
	for _, g := range s.Gifts.ByGift {
		line("gift", g.ID, g.Name, g.Count, g.Value)
	}
	for _, g := range s.Gifts.ByGiver {
		line("giver", g.ID, g.Name, g.Count, g.Value)
	}
	for _, r := range s.Refused {
		line("refused "+cmp.Or(r.Rule, r.Reason), r.User, r.Name, int64(r.Count), 0)
	}
	for _, d := range s.Acts {
		line("act "+string(d.Action), cmp.Or(d.User, d.MID), "by "+d.By, 1, int64(d.Seconds))
	}
	to.Flush()
	return nil // the client may have gone away: nobody is left to tell
}

// plain keeps a spreadsheet from taking a text for a formula.
func plain(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return "'" + text
	}
	return text
}
