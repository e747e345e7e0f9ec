package fanout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"liveroom/internal/lock"
	"liveroom/protocol"
)

// road is a class of subjects that this node says something on, or hears. NATS tells that a user may not do that on its
// own time and to nobody in particular, and the publisher of the message hears "fine"; so each road is tried at the start, and
// then by messages that take the very same way as what they stand for.
type road struct {
	op    string // opPublish or opSubscribe
	class string // as an operator writes it into a user's permissions
	try   string // the subject that is tried
	proof proof

	shut   atomic.Bool
	tried  atomic.Uint64                      // number of the last message of the probe
	denied atomic.Uint64                      // tried, when it was shut: what comes back of before proves nothing
	again  atomic.Uint64                      // the connections, see [looked], when a shut subscription was found allowed again; 0: it was not
	back   atomic.Int64                       // when the probe heard one last, nanoseconds after roads.began
	cancel atomic.Pointer[context.CancelFunc] // ends the try under way, which will not be answered
}

const (
	opPublish   = "publish"
	opSubscribe = "subscribe"
)

// proof is how a road shows that it is open.
type proof int

const (
	byEcho    proof = iota // the message comes back: probed with every round
	byComing               // the message comes back
	byAnswer               // a stream answers; what it is asked to store is refused for another reason
	byAPI                  // the same, at the start alone: nonsense is a line in the server's log, and followers ask all the time
	bySilence              // no error
)

// roadName is a road that somebody asks for before he takes it.
type roadName int

const (
	roadGift roadName = iota
	roadIntent
	roadRules
	roadSettings
	roadRevoke
	roadAudit
	roadRooms // the hearing of all that concerns rooms
	namedRoads
)

// roads are all that a node takes.
type roads struct {
	// Fixed.
	room  string // the probe's own; "==" begins no room's token
	began time.Time
	all   []*road                    // the named ones first
	live  [protocol.NumClasses]*road // of those of live classes; nil of others
	soon  wake                       // asks for a round of tries
	heal  atomic.Bool                // a subscription is allowed again

	told lock.Mutex[lock.Leaf]
	last time.Time // a line was logged
	more int       // violations since
}

func newRoads(node string) *roads {
	own := "==" + protocol.Token(node)
	live := func(kind string, p proof) *road {
		return &road{op: opPublish, class: roomPrefix + "*." + kind, try: roomPrefix + own + "." + kind, proof: p}
	}
	stored := func(prefix string) *road {
		return &road{op: opPublish, class: prefix + "*", try: prefix + own, proof: byAnswer}
	}
	hears := func(class, try string) *road { return &road{op: opSubscribe, class: class, try: try, proof: bySilence} }
	api := func(call, stream string) *road {
		return &road{op: opPublish, class: "$JS.API." + call + ".>", try: "$JS.API." + call + "." + stream, proof: byAPI}
	}
	r := &roads{room: own, began: time.Now(), soon: newWake(), all: []*road{
		roadGift:     stored(giftPrefix),
		roadIntent:   stored(intentPrefix),
		roadRules:    {op: opPublish, class: rulesSubject, try: rulesSubject, proof: byAnswer},
		roadSettings: stored("$KV." + settingsBucket + "."),
		roadRevoke:   stored("$KV." + revokedBucket + "."),
		roadAudit:    stored(auditPrefix),
		roadRooms:    hears(roomPrefix+"*.>", roomPrefix+own+".>"),
	}}
	r.all = append(r.all, live(kindLikes, byEcho), live(kindSeen, byEcho), stored(likesPrefix), stored("$KV."+nodesBucket+"."), stored("$KV."+clusterBucket+"."),
		&road{op: opPublish, class: nodePrefix + "*.presence", try: nodePrefix + own + ".presence", proof: byComing},
		&road{op: opPublish, class: nodePrefix + ">", try: nodeSubject(node, "probe.try"), proof: byComing},
		&road{op: opPublish, class: "lr.nodes.*", try: nodesSubject("try=="), proof: byComing},
		api("STREAM.INFO", giftStream), api("STREAM.CREATE", giftStream), api("STREAM.UPDATE", giftStream),
		api("STREAM.MSG.GET", giftStream), api("DIRECT.GET", giftStream),
		hears("_INBOX.>", nats.NewInbox()), hears("lr.nodes.*", nodesSubject("try==")), hears(rulesNewsSubject, rulesNewsSubject),
		hears(revokedNewsPrefix+"*", revokedNewsPrefix+own), hears(nodePrefix+"*.presence", nodePrefix+own+".presence"),
		hears(nodeSubject(node, "*"), nodeSubject(node, "try")),
	)
	heard := []string{kindGift, kindSettings, kindLikes, kindSeen}
	for c := range protocol.NumClasses {
		if c.Kind().Live {
			r.live[c] = live(c.String(), byEcho)
			r.all, heard = append(r.all, r.live[c]), append(heard, c.String())
		}
	}
	for _, kind := range heard {
		// Each by its own name: what is forbidden within a subscription that is allowed is left out without a word.
		r.all = append(r.all, hears(roomPrefix+"*."+kind, roomPrefix+own+"."+kind))
	}
	return r
}

func (r *roads) of(name roadName) *road { return r.all[name] }

// open returns ErrForbidden while the road is known to be shut. It costs a load.
func (r *road) open() error {
	if r.shut.Load() {
		return fmt.Errorf("%w: to %s %s", ErrForbidden, r.op, r.class)
	}
	return nil
}

// Forbidden names what NATS does not let this node do, each as an operation and a class of subjects; empty when all is well.
func (f *Fabric) Forbidden() []string {
	var out []string
	for _, r := range f.roads.all {
		if r.shut.Load() {
			out = append(out, r.op+" "+r.class)
		}
	}
	slices.Sort(out)
	return out
}

var violation = regexp.MustCompile(`(Publish|Subscription) to "(\S+)"`)

// forbidden takes what NATS says that this node must not do. A subject that belongs to no road is told and no more.
func (f *Fabric) forbidden(err error) {
	m := violation.FindStringSubmatch(err.Error())
	if m == nil {
		f.log.Error("nats", "err", err)
		return
	}
	op, subject := opPublish, m[2]
	if m[1] == "Subscription" {
		op = opSubscribe
	}
	f.metrics.forbidden.WithLabelValues(op).Inc()
	for _, r := range f.roads.all {
		if r.op == op && within(subject, r.class) {
			f.shutRoad(r, subject)
			return
		}
	}
	f.tellForbidden(op, subject)
}

func (f *Fabric) shutRoad(r *road, subject string) {
	r.denied.Store(r.tried.Load())
	r.again.Store(0)
	r.shut.Store(true)
	if cancel := r.cancel.Load(); cancel != nil {
		(*cancel)()
	}
	f.tellForbidden(r.op, subject)
}

// forbiddenEvery is the time between two lines about what is forbidden, however much of it there is.
const forbiddenEvery = time.Minute

func (f *Fabric) tellForbidden(op, subject string) {
	r := f.roads
	r.told.Lock()
	now := time.Now()
	more, tell := r.more, r.last.IsZero() || now.Sub(r.last) >= forbiddenEvery
	if r.more++; tell {
		r.last, r.more = now, 0
	}
	r.told.Unlock()
	if tell {
		f.log.Error("nats forbids what this node needs; mend its user's permissions", "operation", op, "subject", subject, "more", more)
	}
}

// openRoad is for what has been proved. The server has dropped all subscriptions that it forbade, so one that is allowed again
// is open once both connections were made anew.
func (f *Fabric) openRoad(r *road) {
	const anew = 4 // two losses and two returns
	if r.op == opSubscribe && r.shut.Load() {
		if now, again := f.connections.Load()+1, r.again.Load(); again == 0 || now < again+anew {
			r.again.Store(now)
			f.roads.heal.Store(true)
			return
		}
	}
	if !r.shut.Swap(false) {
		return
	}
	r.again.Store(0)
	f.log.Info("nats allows again", "operation", r.op, "subject", r.class)
}

// within reports whether a subject belongs to a class with * for one token and > for the rest.
func within(subject, class string) bool {
	s, c := strings.Split(subject, "."), strings.Split(class, ".")
	for i, token := range c {
		if token == ">" {
			return i < len(s)
		}
		if i >= len(s) || token != "*" && token != s[i] {
			return false
		}
	}
	return len(s) == len(c)
}

// tryRoads tries all roads, those of the API only the first time, and returns what is forbidden.
func (f *Fabric) tryRoads(ctx context.Context, first bool) error {
	if !f.connected() {
		return ErrDisconnected
	}
	var wg sync.WaitGroup
	for _, r := range f.roads.all {
		if r.proof != byAPI || first {
			wg.Go(func() { f.tryRoad(ctx, r) })
		}
	}
	wg.Wait()
	if f.roads.heal.Swap(false) {
		for _, c := range []*nats.Conn{f.live, f.store} {
			_ = c.ForceReconnect() // fails only on a closed connection
		}
	}
	if all := f.Forbidden(); len(all) > 0 {
		return forbiddenError(all)
	}
	return nil
}

// tryRoad opens the road when there is proof, shuts it when NATS says so, and leaves it alone when there is neither.
func (f *Fabric) tryRoad(ctx context.Context, r *road) {
	ctx, cancel := f.storeContext(ctx)
	defer cancel()
	r.cancel.Store(&cancel)
	defer r.cancel.Store(nil)
	shut := r.denied.Load()
	var err error
	switch r.proof {
	case byAnswer, byAPI:
		err = f.askRoad(ctx, r)
	case bySilence:
		if err = f.hearRoad(ctx, r.try); errors.Is(err, nats.ErrPermissionViolation) {
			r.shut.Store(true)
		}
	default:
		err = f.echoRoad(ctx, r)
	}
	if err == nil && r.denied.Load() == shut {
		f.openRoad(r)
	}
}

func (f *Fabric) askRoad(ctx context.Context, r *road) error {
	m := &nats.Msg{Subject: r.try}
	if r.proof == byAnswer {
		m.Header = nats.Header{nats.ExpectedStreamHdr: {"none"}}
	}
	_, err := f.store.RequestMsgWithContext(ctx, m)
	if errors.Is(err, nats.ErrNoResponders) { // it was let through
		return nil
	}
	return err
}

func (f *Fabric) hearRoad(ctx context.Context, subject string) error {
	sub, err := f.live.SubscribeSync(subject)
	if err != nil {
		return err
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only on a closed connection, where there is nothing to undo
	if err := f.live.FlushWithContext(ctx); err != nil {
		return err
	}
	if _, err = sub.NextMsg(time.Millisecond); errors.Is(err, nats.ErrTimeout) {
		return nil
	}
	return err
}

func (f *Fabric) echoRoad(ctx context.Context, r *road) error {
	sub, err := f.live.SubscribeSync(r.try)
	if err != nil {
		return err
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only on a closed connection, where there is nothing to undo
	var body []byte                          // empty where other nodes listen: they take it for nothing
	if r.proof == byEcho {
		body = f.probeEvent(0)
	}
	if err := f.live.Publish(r.try, body); err != nil {
		return err
	}
	_, err = sub.NextMsgWithContext(ctx)
	return err
}

// probing is what the probe says on a room's subjects: an event, because others may listen to danmaku, of a kind that no
// client knows.
type probing struct {
	Event string `json:"ev"`
	Node  string `json:"node"`
	N     uint64 `json:"n"`
}

func (f *Fabric) probeEvent(n uint64) []byte {
	body, _ := json.Marshal(probing{"probe", f.cfg.NodeID, n}) // strings and numbers encode
	return body
}

// probeRoads sends the next message over each road that echoes, and shuts those from which none came back although
// the connection delivers.
func (f *Fabric) probeRoads(now time.Time, delivers bool) {
	for _, r := range f.roads.all {
		if r.proof != byEcho {
			continue
		}
		silence := now.Sub(f.roads.began) - time.Duration(max(r.back.Load(), f.changed.Load()))
		if delivers && silence > f.cfg.ProbeTimeout && !r.shut.Load() {
			f.shutRoad(r, r.class)
		}
		_ = f.live.Publish(r.try, f.probeEvent(r.tried.Add(1))) // not connected: counted as silence
	}
}

// heardProbe takes what comes back to the probe.
func (f *Fabric) heardProbe(m *nats.Msg) {
	var p probing
	if json.Unmarshal(m.Data, &p) != nil || p.N == 0 {
		return // of a single try
	}
	for _, r := range f.roads.all {
		if r.proof == byEcho && r.try == m.Subject {
			r.back.Store(int64(time.Since(f.roads.began)))
			if p.N > r.denied.Load() {
				f.openRoad(r)
			}
		}
	}
}
