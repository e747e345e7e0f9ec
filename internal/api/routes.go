package api

import (
	"net/http"
	"slices"
	"strings"

	"liveroom/protocol"
)

// Prefix is where the API's routes begin.
const Prefix = "/api/v1"

// route is one call of the API.
type route struct {
	method  string
	pattern string // below Prefix, with {room} where the call is about one
	may     permission
	handle  handler
}

// name is what rules call the route, "" where there is none.
func (rt *route) name() string { return strings.TrimSpace(rt.method + " " + rt.pattern) }

// spared tells whether no rule is asked about a call: an admin's about the limits, since no rule may keep its author from
// mending it. A check spends for others and is asked as any call.
func (rt *route) spared(c caller) bool {
	return administers(c, "") && strings.HasPrefix(rt.pattern, "/limits/") && rt.pattern != "/limits/check"
}

// waits tells whether a call's length says nothing, since it may wait for what is to come.
func (rt *route) waits() bool { return rt.pattern == "/events" }

// call is what every handler is given.
type call struct {
	caller
	room string // a valid id; "" when the route has none
}

// routes are all calls; each file of them lists its own.
func (a *API) routes() []route {
	return slices.Concat(a.roomCalls(), a.peopleCalls(), a.speakCalls(), a.heldCalls(), a.filterCalls(), a.eventCalls(), a.ledgerCalls(), a.journalCalls(), a.consumerCalls(), a.revokeCalls(), a.ruleCalls(), a.giftCalls(), a.quotaCalls(), a.trafficCalls())
}

// Routes lists the registered calls as "METHOD /path", for the test that compares them with the documentation.
func (a *API) Routes() []string {
	var out []string
	for _, rt := range a.routes() {
		out = append(out, rt.method+" "+rt.pattern)
	}
	return out
}

// Handler returns everything below [Prefix].
func (a *API) Handler() http.Handler {
	mux := http.NewServeMux()
	for _, rt := range a.routes() {
		mux.Handle(rt.method+" "+Prefix+rt.pattern, a.timed(rt.name(), a.guard(rt)))
	}
	known := mux.Handler
	stray := a.limited(route{}, func(w http.ResponseWriter, r *http.Request, _ caller) { a.unknown(w, r, known) })
	mux.Handle("/", a.timed(otherRoute, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { stray(w, r, caller{}) })))
	return withRequestID(a.withRecover(a.withCORS(mux)))
}

// guard lets through who is known, within limits and permitted.
func (a *API) guard(rt route) http.Handler {
	return a.charged(rt, func(w http.ResponseWriter, r *http.Request, c caller) {
		of := call{caller: c, room: r.PathValue("room")}
		if !rt.may(c, of.room) {
			err := &protocol.Error{Reason: protocol.ReasonForbidden}
			if !c.known {
				err.Reason = protocol.ReasonUnauthenticated
			}
			a.refuse(w, r, err)
			return
		}
		body, err := rt.handle(w, r, of)
		if c.signedIn && rt.method != http.MethodGet {
			a.cfg.Log.Info("an operator's call", "route", rt.name(), "path", r.URL.Path, "by", c.User, "request", w.Header().Get(requestIDHeader), "err", err)
		}
		a.respond(w, r, body, err)
	})
}

// charged finds out who calls, and has the call paid for: a bad token costs its address. What is no verdict costs nobody.
func (a *API) charged(rt route, next func(http.ResponseWriter, *http.Request, caller)) http.Handler {
	paid := a.limited(rt, func(w http.ResponseWriter, r *http.Request, c caller) {
		if c.bad != nil {
			a.refuse(w, r, c.bad)
			return
		}
		next(w, r, c)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(rt.pattern, "{room}") {
			if err := protocol.CheckRoom("room", r.PathValue("room")); err != nil {
				a.refuse(w, r, err)
				return
			}
		}
		c := a.authenticate(r)
		r, end := a.traced(rt, w, r, c)
		defer end()
		if c.bad != nil && c.bad.Reason != protocol.ReasonUnauthenticated {
			a.refuse(w, r, c.bad)
			return
		}
		paid(w, r, c)
	})
}

// unknown answers what no route matches: 405 with the methods that would, else 404.
func (a *API) unknown(w http.ResponseWriter, r *http.Request, known func(*http.Request) (http.Handler, string)) {
	var allowed []string
	for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodPost, http.MethodDelete} {
		other := *r
		other.Method = method
		if _, pattern := known(&other); pattern != "/" {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) == 0 {
		a.refuse(w, r, &protocol.Error{Reason: protocol.ReasonNotFound, Detail: "route"})
		return
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	err := protocol.BadField("method", strings.Join(allowed, ", "), r.Method)
	a.answer(w, r, protocol.Ack{Code: http.StatusMethodNotAllowed, Err: err})
}
