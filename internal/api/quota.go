package api

import (
	"encoding/json"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"liveroom/internal/admit"
	"liveroom/limit"
	"liveroom/protocol"
)

// asked is a request to the limits as another service, or a person who asks why, describes it.
type asked struct {
	Action string `json:"action"` // a name of limit.Action, or "api:" and a route template
	Room   string `json:"room"`
	User   string `json:"user"`
	Role   string `json:"role"`
	Addr   string `json:"addr"`
	Key    string `json:"key"`  // of an API client
	Cost   int64  `json:"cost"` // default 1
	// Audience chooses the tier of rules that have tiers; default: the room's sessions.
	Audience int `json:"audience"`

	Attrs map[string]json.RawMessage `json:"attrs"` // of the user, for rules with where
}

// request checks the parts and puts them together; attributes are among names.
func (q *asked) request(names []string) (limit.Request, *protocol.Error) {
	var out limit.Request
	name, route, routed := strings.Cut(q.Action, ":")
	action, ok := limit.ParseAction(name)
	if !ok || routed && (action != limit.API || route == "") {
		return out, protocol.BadField("action", "danmaku, gift, like, join, connect, frame, api or api:<route>", q.Action)
	}
	if q.Room != "" {
		if err := protocol.CheckRoom("room", q.Room); err != nil {
			return out, err
		}
	}
	for _, id := range [][2]string{{"user", q.User}, {"key", q.Key}} {
		if id[1] != "" {
			if err := protocol.CheckUser(id[0], id[1]); err != nil {
				return out, err
			}
		}
	}
	if q.Role != "" && !protocol.ValidRole(protocol.Role(q.Role)) {
		return out, protocol.BadField("role", "viewer, host, moderator, service or admin", q.Role)
	}
	var addr netip.Addr
	if q.Addr != "" {
		var err error
		if addr, err = netip.ParseAddr(q.Addr); err != nil {
			return out, protocol.BadField("addr", "an IP address", q.Addr)
		}
	}
	if q.Cost < 0 || q.Audience < 0 {
		return out, protocol.BadField("cost, audience", "0 or more", strconv.FormatInt(min(q.Cost, int64(q.Audience)), 10))
	}
	attrs, wrong := protocol.ParseAttrs(q.Attrs, names)
	if wrong != nil {
		return out, wrong
	}
	out = limit.Request{Traits: limit.NewTraits(string(attrs)), Action: action, Cost: q.Cost, Role: q.Role, User: q.User, Key: q.Key, Room: q.Room, Addr: addr, Audience: q.Audience}
	out.Route = route
	return out, nil
}

// named checks that a request to spend names somebody whose buckets the action is charged to. One that names nobody would
// always be granted, and its sender would never learn it.
func (q *asked) named(action limit.Action) *protocol.Error {
	switch {
	case action == limit.Frame:
		return protocol.BadField("action", "anything but frame, which only a socket spends", q.Action)
	case action == limit.Connect && q.Addr == "":
		return protocol.BadField("addr", "the address that connects", "")
	case action == limit.API && q.Key == "" && q.Addr == "":
		return protocol.BadField("key", "the API client, or addr", "")
	case action != limit.Connect && action != limit.API && q.Room == "" && q.User == "":
		return protocol.BadField("room", "a room, a user or both", "")
	}
	return nil
}

// decision is an answer of the limits.
type decision struct {
	Verdict   string `json:"verdict"` // allow or degrade
	Scope     string `json:"scope,omitempty"`
	Rule      string `json:"rule,omitempty"`
	Remaining int64  `json:"remaining"`
	Counted   int64  `json:"counted"`
	DelayMS   int64  `json:"delay_ms,omitempty"`
}

func (a *API) quotaCalls() []route {
	return []route{
		{http.MethodGet, "/limits/explain", speaks, a.explainLimits},
		{http.MethodDelete, "/limits/explain", administers, a.resetLimits},
		{http.MethodPost, "/limits/check", speaks, a.checkLimits},
	}
}

// checkLimits spends from the quotas that the server itself uses, for another service.
func (a *API) checkLimits(w http.ResponseWriter, r *http.Request, _ call) (any, error) {
	q := asked{Cost: 1}
	if err := decode(w, r, &q); err != nil {
		return nil, err
	}
	req, err := q.request(a.cfg.Attributes)
	if err == nil {
		err = q.named(req.Action)
	}
	if err != nil {
		return nil, err
	}
	now := a.cfg.Gate.Now()
	others, release, ok := a.acquire(now, q.Key, req.Addr)
	defer release()
	if !ok {
		return nil, full()
	}
	var d limit.Decision
	err = a.cfg.Hub.WithSubjects(r.Context(), q.Room, q.User, func() *protocol.Error { return a.cfg.Create(req.Addr) }, func(own []*limit.Subject) {
		if req.Audience == 0 && q.Room != "" {
			req.Audience = a.audience(q.Room)
		}
		a.together(own, others, &req, func(all []*limit.Subject) {
			d = a.cfg.Gate.Decide(now, &req, all...)
			if req.Action.Lasts() && d.Verdict != limit.Reject { // nobody tells when what was asked for is gone
				a.cfg.Gate.Release(now, &req, all...)
			}
		})
	})
	switch {
	case err != nil:
		return nil, err
	case d.Verdict == limit.Reject:
		return nil, admit.TurnedAway(d)
	case d.Verdict == limit.Invalid:
		return nil, protocol.BadField("cost", "0 or more", strconv.FormatInt(q.Cost, 10))
	}
	limit.SetHeaders(w.Header(), d, a.cfg.Gate.Rules())
	out := decision{Verdict: d.Verdict.String(), Rule: d.Rule, Remaining: d.Remaining, Counted: d.Counted, DelayMS: d.Delay.Milliseconds()}
	if d.Rule != "" {
		out.Scope = d.Scope.String()
	}
	return out, nil
}

// audience is the room's sessions as its tiers see them.
func (a *API) audience(room string) int {
	if rm, ok := a.cfg.Hub.Room(room); ok {
		return rm.Online()
	}
	return 0
}

// together calls f with subjects in the order of their scopes, the share of the address' network in the room included.
func (a *API) together(own, others []*limit.Subject, req *limit.Request, f func([]*limit.Subject)) {
	all := append(slices.Clone(own), others...)
	slices.SortFunc(all, func(x, y *limit.Subject) int { return int(x.Scope) - int(y.Scope) })
	if req.Room == "" || !req.Addr.IsValid() {
		f(all)
		return
	}
	a.cfg.Hub.Share(req.Room, req.Addr, func(s *limit.Subject) { f(append(all, s)) })
}

// standing is a [limit.Standing] with its time in the unit of the wire.
type standing struct {
	Rule         string `json:"rule"`
	Scope        string `json:"scope"`
	Algorithm    string `json:"algorithm"`
	Why          string `json:"why"`
	Level        int64  `json:"level"`
	Burst        int64  `json:"burst"`
	Cluster      string `json:"cluster,omitempty"`
	Held         int64  `json:"held,omitempty"`
	RetryAfterMS int64  `json:"retry_after_ms"` // 0: it would not refuse; -1: it always would
}

func standingOf(s limit.Standing) standing {
	ms := int64((s.RetryAfter + time.Millisecond - 1) / time.Millisecond)
	if s.RetryAfter == limit.Never {
		ms = -1
	}
	return standing{s.Rule, s.Scope, s.Algorithm, s.Why, s.Level, s.Burst, s.Cluster, s.Held, ms}
}

// explainLimits tells which rules apply to a request and how full their buckets are on this node. It spends nothing.
func (a *API) explainLimits(_ http.ResponseWriter, r *http.Request, _ call) (any, error) {
	q, req, err := a.askedOf(r)
	if err != nil {
		return nil, err
	}
	now := a.cfg.Gate.Now()
	others, release, _ := a.acquire(now, q.Key, req.Addr)
	defer release()
	subjects := a.cfg.Hub.Subjects(q.Room, q.User)
	if req.Action == limit.Frame || slices.Contains(limit.Messages(), req.Action) {
		subjects = append(subjects, &limit.Subject{Scope: limit.ScopeConn}) // like that of a new connection
	}
	out := struct {
		Version uint64     `json:"version"`
		Rules   []standing `json:"rules"`
	}{a.cfg.Book.Current().Version, []standing{}}
	a.together(subjects, others, &req, func(all []*limit.Subject) {
		for _, s := range a.cfg.Gate.Explain(now, &req, all...) {
			out.Rules = append(out.Rules, standingOf(s))
		}
	})
	return out, nil
}

// askedOf reads a request from query parameters.
func (a *API) askedOf(r *http.Request) (asked, limit.Request, *protocol.Error) {
	v := r.URL.Query()
	q := asked{Action: v.Get("action"), Room: v.Get("room"), User: v.Get("user"), Role: v.Get("role"), Addr: v.Get("addr"), Key: v.Get("key"), Cost: 1}
	cost, err := number(r, "cost", 0, 1<<40, 1)
	if err != nil {
		return q, limit.Request{}, err
	}
	q.Cost = int64(cost)
	if text := v.Get("attrs"); text != "" && json.Unmarshal([]byte(text), &q.Attrs) != nil {
		return q, limit.Request{}, protocol.BadField("attrs", "an object as in a token, such as {\"level\":12}", text)
	}
	req, err := q.request(a.cfg.Attributes)
	if err == nil && q.Room != "" {
		req.Audience = a.audience(q.Room)
	}
	return q, req, err
}

// resetLimits fills every bucket of one subject on this node: of a user, of a user in a room, of a room, of an address
// or of a key. Exactly the one that the most specific parameters name.
func (a *API) resetLimits(w http.ResponseWriter, r *http.Request, c call) (any, error) {
	v := r.URL.Query()
	if v.Get("action") == "" {
		v.Set("action", "api")
		r.URL.RawQuery = v.Encode()
	}
	q, req, err := a.askedOf(r)
	if err != nil {
		return nil, err
	}
	named := 0
	for _, given := range []bool{q.Room != "" || q.User != "", q.Addr != "", q.Key != ""} {
		if given {
			named++
		}
	}
	if named != 1 {
		return nil, &protocol.Error{Reason: protocol.ReasonBadRequest, Detail: "subject: allowed is one of user, user and room, room, addr, key; received " + strconv.Itoa(named)}
	}
	others, release, _ := a.acquire(a.cfg.Gate.Now(), q.Key, req.Addr)
	defer release()
	subjects := others[:min(len(others), 1)] // an address without the network around it, which others share
	switch own := a.cfg.Hub.Subjects(q.Room, q.User); len(own) {
	case 4: // user, user in the room, room, everything
		subjects = own[1:2]
	case 2: // user or room, everything
		subjects = own[:1]
	}
	for _, s := range subjects {
		s.Reset()
	}
	a.cfg.Log.Info("limits reset", "room", q.Room, "user", q.User, "by", c.User)
	w.WriteHeader(http.StatusNoContent)
	return nil, nil
}
