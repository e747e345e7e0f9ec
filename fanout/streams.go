package fanout

import (
	"context"
	"errors"
	"fmt"
	"time"

	"liveroom/protocol"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	giftStream     = "liveroom_gifts"
	recentStream   = "liveroom_recent"
	likesStream    = "liveroom_likes"
	likeLogStream  = "liveroom_likelog"
	settingsBucket = "liveroom_settings"
	settingsStream = "KV_" + settingsBucket
	nodesBucket    = "liveroom_nodes"
	nodesStream    = "KV_" + nodesBucket
	clusterBucket  = "liveroom_cluster"
	clusterStream  = "KV_" + clusterBucket
	rulesStream    = "liveroom_rules"
	auditStream    = "liveroom_audit"
	revokedBucket  = "liveroom_revoked"
	revokedStream  = "KV_" + revokedBucket
)

// Bounds of the streams that have no setting; together with the ledger's they are what the data directory may hold.
const (
	likesBytes    = 256 << 20
	likeLogBytes  = 256 << 20
	settingsBytes = 256 << 20
	nodesBytes    = 16 << 20
	clusterBytes  = 1 << 20
	rulesBytes    = 256 << 20
	auditBytes    = 256 << 20
	revokedBytes  = 64 << 20
)

// What moderators did is kept for so long, and at most so much of it per room.
const (
	auditAge     = 90 * 24 * time.Hour
	auditPerRoom = 1000
)

// rulesKept is how many sets of limits the store keeps, the newest.
const rulesKept = 1000

// likeLogAge is how long a shown total stays in the log: long after the counter itself is on disk, see embeddedSync.
const likeLogAge = 5 * time.Minute

const nodesAge = 7 * 24 * time.Hour

// buckets are handles and stay valid when the streams below them are made anew.
type buckets struct{ settings, nodes, cluster, revoked jetstream.KeyValue }

// streamConfigs describes all streams. The first decides how many replicas there can be, see openStreams.
func (f *Fabric) streamConfigs() []jetstream.StreamConfig {
	// Written behind: R1 only, and only where the server would otherwise sync each write (see doc.go).
	likesMode := jetstream.DefaultPersistMode
	if f.server != nil {
		likesMode = jetstream.AsyncPersistMode
	}
	settings := bucket(settingsBucket, f.cfg.SettingsAge, settingsBytes)
	settings.RePublish = &jetstream.RePublish{Source: "$KV." + settingsBucket + ".*", Destination: roomPrefix + "{{wildcard(1)}}." + kindSettings}
	settings.FirstSeq = f.known.settings.next(settingsGap)
	nodes := bucket(nodesBucket, nodesAge, nodesBytes)
	revoked := bucket(revokedBucket, RevokedFor, revokedBytes)
	// A bucket that was lost must not number starts as the one before did, and who watches one goes on from where it was.
	// The clock is only a large number: what this node knows counts where it was set back.
	nodes.FirstSeq = max(uint64(time.Now().UnixMilli()), f.incarnation+nodesGap)
	revoked.FirstSeq = nodes.FirstSeq
	revoked.RePublish = &jetstream.RePublish{Source: "$KV." + revokedBucket + ".*", Destination: revokedNewsPrefix + "{{wildcard(1)}}", HeadersOnly: true}
	streams := []jetstream.StreamConfig{
		{
			Name: rulesStream, Subjects: []string{rulesSubject}, Storage: jetstream.FileStorage,
			MaxMsgs: rulesKept, MaxBytes: rulesBytes, MaxMsgSize: rulesBytes / rulesKept, AllowDirect: true, DenyDelete: true,
			RePublish: &jetstream.RePublish{Source: rulesSubject, Destination: rulesNewsSubject, HeadersOnly: true},
			FirstSeq:  f.known.rules.next(rulesGap),
		},
		{
			Name: giftStream, Subjects: []string{giftPrefix + "*"}, Storage: jetstream.FileStorage,
			Discard: jetstream.DiscardNew, MaxBytes: f.cfg.GiftBytes, MaxAge: f.cfg.GiftAge, Duplicates: f.cfg.GiftRetry,
			RePublish:   &jetstream.RePublish{Source: giftPrefix + "*", Destination: roomPrefix + "{{wildcard(1)}}." + kindGift},
			AllowDirect: true, DenyDelete: true, FirstSeq: f.known.gift.next(giftGap),
		},
		{
			// Replicated like the rest, though in memory: else the death of one server takes the recent danmaku of all rooms
			// with it, and their reading until it is back.
			Name: recentStream, Subjects: []string{roomPrefix + "*." + protocol.ClassDanmaku.String()}, Storage: jetstream.MemoryStorage,
			MaxBytes: f.cfg.RecentBytes, MaxAge: f.cfg.RecentAge, MaxMsgsPerSubject: int64(f.cfg.RecentPerRoom),
			Duplicates: min(f.cfg.RecentAge, time.Minute), AllowDirect: true,
		},
		{
			Name: likesStream, Subjects: []string{likesPrefix + "*"}, Storage: jetstream.FileStorage,
			AllowMsgCounter: true, MaxMsgsPerSubject: 1, MaxBytes: likesBytes, MaxAge: f.cfg.LikesAge, Duplicates: likeWindow,
			AllowDirect: true, PersistMode: likesMode,
		},
		intents(), settings, nodes, bucket(clusterBucket, 0, clusterBytes), revoked,
		{
			Name: auditStream, Subjects: []string{auditPrefix + "*"}, Storage: jetstream.FileStorage,
			MaxMsgsPerSubject: auditPerRoom, MaxBytes: auditBytes, MaxAge: auditAge, AllowDirect: true, DenyDelete: true,
		},
	}
	if f.server != nil {
		streams = append(streams, jetstream.StreamConfig{
			Name: likeLogStream, Subjects: []string{likeLogSubject}, Storage: jetstream.FileStorage,
			MaxBytes: likeLogBytes, MaxAge: likeLogAge, Duplicates: time.Second, AllowDirect: true,
		})
	}
	return streams
}

// bucket describes a key-value bucket's stream (NATS ADR-8), which can do here what the call for buckets cannot: begin at
// a sequence.
func bucket(name string, age time.Duration, size int64) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: "KV_" + name, Subjects: []string{"$KV." + name + ".>"}, Storage: jetstream.FileStorage,
		MaxMsgsPerSubject: 1, MaxAge: age, MaxBytes: size, Discard: jetstream.DiscardNew, Duplicates: 2 * time.Minute,
		AllowRollup: true, DenyDelete: true, AllowDirect: true,
	}
}

// openStreams creates what is missing and brings what is there to this configuration. It returns the names of those that
// are other streams than they were when this node looked last, whoever made them.
func (f *Fabric) openStreams(ctx context.Context) (b buckets, anew map[string]bool, err error) {
	anew = map[string]bool{}
	replicas := f.replicasWanted()
	for i, s := range f.streamConfigs() {
		for {
			s.Replicas = replicas
			var made time.Time
			if made, err = f.openStream(ctx, s); err == nil {
				was, known := f.made[s.Name]
				anew[s.Name] = known && !made.Equal(was)
				f.made[s.Name] = made
			}
			// The first stream is small and finds out how many servers there are for it.
			if i > 0 || replicas == 1 || f.cfg.Replicas > 0 || !fewerServers(err) {
				break
			}
			replicas--
		}
		if err != nil {
			return b, anew, fmt.Errorf("stream %s with %d replicas: %w", s.Name, replicas, err)
		}
	}
	if was := f.replicas.Swap(int64(replicas)); was > 0 && int64(replicas) > was {
		f.log.Info("streams have more replicas now", "replicas", replicas, "before", was)
	}
	for name, handle := range map[string]*jetstream.KeyValue{
		settingsBucket: &b.settings, nodesBucket: &b.nodes, clusterBucket: &b.cluster, revokedBucket: &b.revoked,
	} {
		if *handle, err = f.js.KeyValue(ctx, name); err != nil {
			return b, anew, fmt.Errorf("bucket %s: %w", name, err)
		}
	}
	return b, anew, nil
}

// replicasMost is enough to lose one server; more only cost.
const replicasMost = 3

// replicasWanted is where openStreams begins to try.
func (f *Fabric) replicasWanted() int {
	switch {
	case f.server != nil:
		return 1
	case f.cfg.Replicas > 0:
		return f.cfg.Replicas
	case f.store.ConnectedClusterName() == "":
		return 1
	default:
		return replicasMost
	}
}

// mayGrow reports whether servers that joined later could hold more replicas.
func (f *Fabric) mayGrow() bool { return int(f.replicas.Load()) < f.replicasWanted() }

// Errors of nats-server for more replicas than there are servers with JetStream: in a cluster, and alone.
const (
	errCodeNoPeers     = 10005
	errCodeNoReplicas  = 10074
	errCodeUnavailable = 10008 // the cluster has no leader yet
)

func fewerServers(err error) bool {
	code := apiCode(err)
	return code == errCodeNoPeers || code == errCodeNoReplicas
}

// apiCode is the error that JetStream answered with, 0 for none.
func apiCode(err error) jetstream.ErrorCode {
	var api jetstream.JetStreamError
	if errors.As(err, &api) && api.APIError() != nil {
		return api.APIError().ErrorCode
	}
	return 0
}

// streamTimeout is how long the making of one stream may take, at least: it is an election, where a write is none.
const streamTimeout = 5 * time.Second

// openStream creates the stream, or brings it to this configuration. It never takes replicas away: what is lost for a
// while comes back. It returns when the stream was made.
func (f *Fabric) openStream(ctx context.Context, s jetstream.StreamConfig) (made time.Time, err error) {
	// A cluster without a leader does not answer at all.
	ctx, cancel := context.WithTimeout(ctx, max(f.cfg.StoreTimeout, streamTimeout))
	defer cancel()
	have, err := f.js.Stream(ctx, s.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		if err := f.unread(s.Name); err != nil {
			return made, err
		}
		if have, err = f.js.CreateStream(ctx, s); err == nil {
			if s.Name == giftStream {
				f.knowLedger(have.CachedInfo())
			}
			return have.CachedInfo().Created, nil
		}
		if !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			return made, err
		}
		have, err = f.js.Stream(ctx, s.Name) // another node was faster
	}
	if err != nil {
		return made, err
	}
	is := have.CachedInfo().Config
	s.FirstSeq, s.Replicas = is.FirstSeq, max(s.Replicas, is.Replicas)
	if s.Name == giftStream {
		f.knowLedger(have.CachedInfo())
		s.Metadata = map[string]string{}
		for _, key := range []string{ledgerKey, voidKey} {
			if v := is.Metadata[key]; v != "" {
				s.Metadata[key] = v
			}
		}
	}
	_, err = f.js.UpdateStream(ctx, s)
	return have.CachedInfo().Created, err
}
