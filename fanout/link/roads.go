package link

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

// Road is a road that somebody asks for before he takes it.
type Road int

// The roads that are asked for. RoadRooms is the hearing of all that concerns rooms.
const (
	RoadGift Road = iota
	RoadIntent
	RoadRules
	RoadCatalogue
	RoadFilter
	RoadSettings
	RoadRevoke
	RoadAudit
	RoadAct
	RoadShow
	RoadSaid
	RoadConsumer
	RoadHeld
	RoadErasure
	RoadLetter
	RoadRooms
)

// roads are all that a node takes.
type roads struct {
	// Fixed.
	link  *Link
	room  string // the probe's own; "==" begins no room's token
	began time.Time
	all   []*road                    // the named ones first
	live  [protocol.NumClasses]*road // of those of live classes; nil of others
	soon  Wake                       // asks for a round of tries
	heal  atomic.Bool                // a subscription is allowed again

	told lock.Mutex[lock.Leaf]
	last time.Time // a line was logged
	more int       // violations since
}

func newRoads(l *Link) *roads {
	node := l.cfg.NodeID
	own := "==" + protocol.Token(node)
	live := func(kind Kind) *road {
		return &road{op: opPublish, class: roomPrefix + "*." + kind, try: roomPrefix + own + "." + kind, proof: byEcho}
	}
	stored := func(prefix string) *road {
		return &road{op: opPublish, class: prefix + "*", try: prefix + own, proof: byAnswer}
	}
	comes := func(class, try string) *road { return &road{op: opPublish, class: class, try: try, proof: byComing} }
	hears := func(class, try string) *road { return &road{op: opSubscribe, class: class, try: try, proof: bySilence} }
	a := &roads{link: l, room: own, began: time.Now(), soon: NewWake(), all: []*road{
		RoadGift:      stored(GiftPrefix),
		RoadIntent:    stored(IntentPrefix),
		RoadRules:     {op: opPublish, class: RulesSubject, try: RulesSubject, proof: byAnswer},
		RoadFilter:    {op: opPublish, class: FilterSubject, try: FilterSubject, proof: byAnswer},
		RoadCatalogue: {op: opPublish, class: CatalogueSubject, try: CatalogueSubject, proof: byAnswer},
		RoadSettings:  stored(BucketPrefix(SettingsBucket)),
		RoadRevoke:    stored(BucketPrefix(RevokedBucket)),
		RoadAudit:     stored(AuditPrefix),
		RoadAct:       stored(ActPrefix),
		RoadShow:      stored(ShowPrefix),
		RoadSaid:      stored(SaidPrefix),
		RoadConsumer:  stored(ConsumerPrefix),
		RoadErasure:   stored(ErasurePrefix),
		RoadHeld:      {op: opPublish, class: HeldPrefix + "*.*", try: HeldPrefix + own + ".try", proof: byAnswer},
		RoadLetter:    {op: opPublish, class: LetterPrefix + "*.*", try: LetterPrefix + own + ".try", proof: byAnswer},
		RoadRooms:     hears(roomPrefix+"*.>", roomPrefix+own+".>"),
	}}
	a.all = append(a.all, live(KindLikes), live(KindSeen), stored(LikesPrefix), stored(BucketPrefix(NodesBucket)), stored(BucketPrefix(ClusterBucket)),
		comes(PresenceSubject, nodePrefix+own+".presence"), comes(nodePrefix+">", NodeSubject(node, "probe.try")), comes(NodesSubject("*"), NodesSubject("try==")),
		hears("_INBOX.>", nats.NewInbox()), hears(NodesSubject("*"), NodesSubject("try==")), hears(RulesNewsSubject, RulesNewsSubject), hears(CatalogueNewsSubject, CatalogueNewsSubject), hears(FilterNewsSubject, FilterNewsSubject), hears(ErasureNewsPrefix+"*", ErasureNewsPrefix+own),
		hears(RevokedNewsPrefix+"*", RevokedNewsPrefix+own), hears(PresenceSubject, nodePrefix+own+".presence"),
		hears(NodeSubject(node, "*"), NodeSubject(node, "try")),
	)
	for _, call := range []string{"STREAM.INFO", "STREAM.CREATE", "STREAM.UPDATE", "STREAM.MSG.GET", "STREAM.MSG.DELETE", "DIRECT.GET"} {
		a.all = append(a.all, &road{op: opPublish, class: "$JS.API." + call + ".>", try: "$JS.API." + call + "." + GiftStream, proof: byAPI})
	}
	heard := []Kind{KindGift, KindSettings, KindLikes, KindSeen, KindHeld, KindAct}
	for c := range protocol.NumClasses {
		if c.Kind().Live {
			a.live[c] = live(c.String())
			a.all, heard = append(a.all, a.live[c]), append(heard, c.String())
		}
	}
	for _, kind := range heard {
		// Each by its own name: what is forbidden within a subscription that is allowed is left out without a word.
		a.all = append(a.all, hears(roomPrefix+"*."+kind, roomPrefix+own+"."+kind))
	}
	return a
}

// open returns ErrForbidden while the road is known to be shut. It costs a load.
func (r *road) open() error {
	if r.shut.Load() {
		return fmt.Errorf("%w: to %s %s", ErrForbidden, r.op, r.class)
	}
	return nil
}

// Class is the subjects of a road.
func (l *Link) Class(name Road) string { return l.roads.all[name].class }

// May returns ErrForbidden while the road is known to be shut.
func (l *Link) May(name Road) error { return l.roads.all[name].open() }

// MayShow returns ErrForbidden when nobody, or nobody here, would hear what is of a live class.
func (l *Link) MayShow(kind Kind) error {
	c, live := protocol.LiveClass(kind)
	if !live {
		return nil
	}
	if err := l.roads.live[c].open(); err != nil {
		return err
	}
	return l.May(RoadRooms)
}

// KeepTrying tries all roads in each period, and soon after a connection was lost or came back, until ctx ends. What comes of
// it is kept by the roads.
func (l *Link) KeepTrying(ctx context.Context, period time.Duration) {
	if l.server == nil {
		Every(ctx, period, l.roads.soon, func(ctx context.Context) { _ = l.roads.tryAll(ctx, false) })
	}
}

// Allowed returns ErrForbidden with all that NATS does not let this node do, each as an operation and a class of subjects; nil when
// all is well.
func (l *Link) Allowed() error {
	var shut []string
	for _, r := range l.roads.all {
		if r.shut.Load() {
			shut = append(shut, r.op+" "+r.class)
		}
	}
	if len(shut) == 0 {
		return nil
	}
	slices.Sort(shut)
	return fmt.Errorf("%w: %s", ErrForbidden, strings.Join(shut, ", "))
}

var violation = regexp.MustCompile(`(Publish|Subscription) to "(\S+)"`)

// forbidden takes what NATS says that this node must not do. A subject that belongs to no road is told and no more.
func (a *roads) forbidden(err error) {
	m := violation.FindStringSubmatch(err.Error())
	if m == nil {
		a.link.Log.Error("nats", "err", err)
		return
	}
	op, subject := opPublish, m[2]
	if m[1] == "Subscription" {
		op = opSubscribe
	}
	a.link.metrics.forbidden[op].Inc()
	for _, r := range a.all {
		if r.op == op && within(subject, r.class) {
			a.shut(r, subject)
			return
		}
	}
	a.tell(op, subject)
}

func (a *roads) shut(r *road, subject string) {
	r.denied.Store(r.tried.Load())
	r.again.Store(0)
	r.shut.Store(true)
	if cancel := r.cancel.Load(); cancel != nil {
		(*cancel)()
	}
	a.tell(r.op, subject)
}

// forbiddenEvery is the time between two lines about what is forbidden, however much of it there is.
const forbiddenEvery = time.Minute

func (a *roads) tell(op, subject string) {
	a.told.Lock()
	now := time.Now()
	more, tell := a.more, a.last.IsZero() || now.Sub(a.last) >= forbiddenEvery
	if a.more++; tell {
		a.last, a.more = now, 0
	}
	a.told.Unlock()
	if tell {
		a.link.Log.Error("nats forbids what this node needs; mend its user's permissions", "operation", op, "subject", subject, "more", more)
	}
}

// open is for what has been proved. The server has dropped all subscriptions that it forbade, so one that is allowed again
// is open once both connections were made anew.
func (a *roads) open(r *road) {
	const anew = 4 // two losses and two returns
	if r.op == opSubscribe && r.shut.Load() {
		if now, again := a.link.connections.Load()+1, r.again.Load(); again == 0 || now < again+anew {
			r.again.Store(now)
			a.heal.Store(true)
			return
		}
	}
	if !r.shut.Swap(false) {
		return
	}
	r.again.Store(0)
	a.link.Log.Info("nats allows again", "operation", r.op, "subject", r.class)
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
func (a *roads) tryAll(ctx context.Context, first bool) error {
	if !a.link.Connected() {
		return ErrDisconnected
	}
	var wg sync.WaitGroup
	for _, r := range a.all {
		if r.proof != byAPI || first {
			wg.Go(func() { a.try(ctx, r) })
		}
	}
	wg.Wait()
	if a.heal.Swap(false) {
		for _, c := range []*nats.Conn{a.link.Live, a.link.Store} {
			_ = c.ForceReconnect() // fails only on a closed connection
		}
	}
	return a.link.Allowed()
}

// tryRoad opens the road when there is proof, shuts it when NATS says so, and leaves it alone when there is neither.
func (a *roads) try(ctx context.Context, r *road) {
	ctx, cancel := a.link.Bounded(ctx)
	defer cancel()
	r.cancel.Store(&cancel)
	defer r.cancel.Store(nil)
	shut := r.denied.Load()
	var err error
	switch r.proof {
	case byAnswer, byAPI:
		err = a.ask(ctx, r)
	case bySilence:
		if err = a.hear(ctx, r.try); errors.Is(err, nats.ErrPermissionViolation) {
			r.shut.Store(true)
		}
	default:
		err = a.echo(ctx, r)
	}
	if err == nil && r.denied.Load() == shut {
		a.open(r)
	}
}

func (a *roads) ask(ctx context.Context, r *road) error {
	m := &nats.Msg{Subject: r.try}
	if r.proof == byAnswer {
		m = unstored(r.try, nil)
	}
	_, err := a.link.Store.RequestMsgWithContext(ctx, m)
	if errors.Is(err, nats.ErrNoResponders) { // it was let through
		return nil
	}
	return err
}

func (a *roads) hear(ctx context.Context, subject string) error {
	sub, err := a.link.Live.SubscribeSync(subject)
	if err != nil {
		return err
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only on a closed connection, where there is nothing to undo
	if err := a.link.Live.FlushWithContext(ctx); err != nil {
		return err
	}
	if _, err = sub.NextMsg(time.Millisecond); errors.Is(err, nats.ErrTimeout) {
		return nil
	}
	return err
}

func (a *roads) echo(ctx context.Context, r *road) error {
	sub, err := a.link.Live.SubscribeSync(r.try)
	if err != nil {
		return err
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only on a closed connection, where there is nothing to undo
	var body []byte                          // empty where other nodes listen: they take it for nothing
	if r.proof == byEcho {
		body = a.event(0)
	}
	if err := a.link.Live.PublishMsg(unstored(r.try, body)); err != nil {
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

// unstored is a message that no stream takes which listens to the subject.
func unstored(subject string, body []byte) *nats.Msg {
	return &nats.Msg{Subject: subject, Data: body, Header: nats.Header{nats.ExpectedStreamHdr: {"none"}}}
}

func (a *roads) event(n uint64) []byte {
	body, _ := json.Marshal(probing{"probe", a.link.cfg.NodeID, n}) // strings and numbers encode
	return body
}

// probeRoads sends the next message over each road that echoes, and shuts those from which none came back although
// the connection delivers.
func (a *roads) probe(now time.Time, delivers bool) {
	for _, r := range a.all {
		if r.proof != byEcho {
			continue
		}
		silence := now.Sub(a.began) - time.Duration(max(r.back.Load(), a.link.changed.Load()))
		if delivers && silence > a.link.cfg.ProbeTimeout && !r.shut.Load() {
			a.shut(r, r.class)
		}
		_ = a.link.Live.PublishMsg(unstored(r.try, a.event(r.tried.Add(1)))) // not connected: counted as silence
	}
}

// heardProbe takes what comes back to the probe.
func (a *roads) heard(m *nats.Msg) {
	var p probing
	if json.Unmarshal(m.Data, &p) != nil || p.N == 0 {
		return // of a single try
	}
	for _, r := range a.all {
		if r.proof == byEcho && r.try == m.Subject {
			r.back.Store(int64(time.Since(a.began)))
			if p.N > r.denied.Load() {
				a.open(r)
			}
		}
	}
}
