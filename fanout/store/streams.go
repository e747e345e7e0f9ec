package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"liveroom/fanout/link"
	"liveroom/protocol"
)

// The buckets' streams.
var (
	settingsStream = link.BucketStream(link.SettingsBucket)
	nodesStream    = link.BucketStream(link.NodesBucket)
	clusterStream  = link.BucketStream(link.ClusterBucket)
	revokedStream  = link.BucketStream(link.RevokedBucket)
)

// Bounds of the streams; together with the ledger's they are what the data directory may hold.
const (
	recentBytes   = 64 << 20 // in memory; the oldest go first
	likesBytes    = 256 << 20
	likeLogBytes  = 256 << 20
	settingsBytes = 256 << 20
	nodesBytes    = 16 << 20
	clusterBytes  = 1 << 20
	auditBytes    = 256 << 20
	revokedBytes  = 64 << 20
	actBytes      = 64 << 20
	heldBytes     = 128 << 20 // twice what rooms hold at most, so that what is decided finds a place
)

// Danmaku says how much is kept of what was said.
type Danmaku struct {
	Off   bool // nothing new
	Age   time.Duration
	Bytes int64
}

// How long what is stored stays, and how much of it.
const (
	recentAge     = 5 * time.Minute
	recentPerRoom = 200
	likesAge      = 30 * 24 * time.Hour // a room's total, after its last like
	likeLogAge    = 5 * time.Minute     // a shown total: long after the counter itself is on disk, see link.SyncWithin
	settingsAge   = 90 * 24 * time.Hour // after their last change, or the room's last member
	auditAge      = 90 * 24 * time.Hour
	auditPerRoom  = 1000
	nodesAge      = 7 * 24 * time.Hour
)

// DiskMost is what the streams on disk may hold, with a ledger and with danmaku of these bytes.
func DiskMost(giftBytes, danmakuBytes int64) int64 {
	return giftBytes + danmakuBytes + likesBytes + likeLogBytes + settingsBytes + nodesBytes + clusterBytes + 2*editionsBytes + filterBytes + auditBytes + showsBytes + revokedBytes + intentBytes + readerBytes + heldBytes + actBytes + erasuresBytes + letterBytes
}

// MemoryMost is of those in memory.
const MemoryMost = recentBytes + 1<<20

// buckets are handles and stay valid when the streams below them are made anew.
type buckets struct{ settings, nodes, cluster, revoked jetstream.KeyValue }

// streamConfigs describes all streams. The first decides how many replicas there can be, see openStreams.
func (s *Store) streamConfigs() []jetstream.StreamConfig {
	// Written behind: R1 only, and only where the server would otherwise sync each write (see doc.go).
	behind := jetstream.DefaultPersistMode
	if s.link.Embedded() {
		behind = jetstream.AsyncPersistMode
	}
	danmaku := link.AnyRoomSubject("*", protocol.ClassDanmaku.String())
	var said *jetstream.RePublish // two streams can't listen to one subject
	if !s.cfg.Danmaku.Off {
		said = &jetstream.RePublish{Source: danmaku, Destination: link.SaidPrefix + "{{wildcard(1)}}"}
	}
	events := jetstream.StreamConfig{
		Name: link.EventsStream, Subjects: []string{link.SaidPrefix + "*", link.AnyRoomSubject("*", link.KindLikes)}, Storage: jetstream.FileStorage,
		MaxBytes: s.cfg.Danmaku.Bytes, MaxAge: s.cfg.Danmaku.Age, Duplicates: time.Second, AllowDirect: true, PersistMode: behind,
		Compression:      jetstream.S2Compression,
		SubjectTransform: &jetstream.SubjectTransformConfig{Source: link.AnyRoomSubject("*", "*"), Destination: link.SaidPrefix + "{{wildcard(1)}}"},
	}
	if s.oneLog() {
		events.Subjects = append(events.Subjects, danmaku)
	}
	settings := bucket(link.SettingsBucket, settingsAge, settingsBytes)
	settings.RePublish = &jetstream.RePublish{Source: settingsSubjects, Destination: link.AnyRoomSubject("{{wildcard(1)}}", link.KindSettings)}
	settings.FirstSeq = s.here.settings.next(settingsGap)
	nodes := bucket(link.NodesBucket, nodesAge, nodesBytes)
	revoked := bucket(link.RevokedBucket, RevokedFor, revokedBytes)
	// A bucket that was lost must not number starts as the one before did, and who watches one goes on from where it was.
	// The clock is only a large number: what this node knows counts where it was set back.
	nodes.FirstSeq = max(uint64(time.Now().UnixMilli()), s.incarnation+nodesGap)
	revoked.FirstSeq = nodes.FirstSeq
	revoked.RePublish = &jetstream.RePublish{Source: link.BucketPrefix(link.RevokedBucket) + "*", Destination: link.RevokedNewsPrefix + "{{wildcard(1)}}", HeadersOnly: true}
	streams := []jetstream.StreamConfig{
		s.here.limits().config(), s.here.gifts().config(), s.here.words().config(),
		{
			Name: link.GiftStream, Subjects: []string{link.GiftPrefix + "*"}, Storage: jetstream.FileStorage,
			Discard: jetstream.DiscardNew, MaxBytes: s.cfg.GiftBytes, MaxAge: s.cfg.GiftAge, Duplicates: s.cfg.GiftRetry,
			RePublish:   &jetstream.RePublish{Source: link.GiftPrefix + "*", Destination: link.AnyRoomSubject("{{wildcard(1)}}", link.KindGift)},
			AllowDirect: true, DenyDelete: true, FirstSeq: s.here.gift.next(giftGap), AllowAtomicPublish: s.link.Embedded(), // see groups
		},
		events,
		{
			Name: link.LikesStream, Subjects: []string{link.LikesPrefix + "*"}, Storage: jetstream.FileStorage,
			AllowMsgCounter: true, MaxMsgsPerSubject: 1, MaxBytes: likesBytes, MaxAge: likesAge, Duplicates: likeWindow,
			AllowDirect: true, PersistMode: behind,
		},
		intents(s.link.Embedded()), shows(), readers(nodes.FirstSeq), withheld(), erasures(s.cfg), letters(), settings, s.acts(), nodes, bucket(link.ClusterBucket, 0, clusterBytes), revoked,
		{
			Name: link.AuditStream, Subjects: []string{link.AuditPrefix + "*"}, Storage: jetstream.FileStorage,
			MaxMsgsPerSubject: auditPerRoom, MaxBytes: auditBytes, MaxAge: auditAge, AllowDirect: true, DenyDelete: true,
			FirstSeq: nodes.FirstSeq, // numbers are ids
		},
	}
	if !s.oneLog() { // behind the events, which had its subject where danmaku were kept before
		streams = append(streams, jetstream.StreamConfig{
			// Replicated like the rest, though in memory: else the death of one server takes the recent danmaku of all rooms
			// with it, and their reading until it is back.
			Name: link.RecentStream, Subjects: []string{danmaku}, Storage: jetstream.MemoryStorage,
			MaxBytes: recentBytes, MaxAge: recentAge, MaxMsgsPerSubject: recentPerRoom,
			Duplicates: time.Minute, AllowDirect: true, RePublish: said,
		})
	}
	if s.link.Embedded() {
		streams = append(streams, jetstream.StreamConfig{
			Name: link.LikeLogStream, Subjects: []string{link.LikeLogSubject}, Storage: jetstream.FileStorage,
			MaxBytes: likeLogBytes, MaxAge: likeLogAge, Duplicates: time.Second, AllowDirect: true,
		})
	}
	return streams
}

// oneLog reports whether what was said is kept where recent danmaku are read from. Beside NATS inside this process a copy of each costs more
// than all the rest of a danmaku in a small room: it is goroutines that are woken, not what they do. Servers of their own pay for that themselves, and
// a memory stream of theirs outlives one of them.
func (c *core) oneLog() bool { return c.link.Embedded() && !c.cfg.Danmaku.Off }

// bucket describes a key-value bucket's stream (NATS ADR-8), which can do here what the call for buckets cannot: begin at
// a sequence.
func bucket(name string, age time.Duration, size int64) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: link.BucketStream(name), Subjects: []string{link.BucketPrefix(name) + ">"}, Storage: jetstream.FileStorage,
		MaxMsgsPerSubject: 1, MaxAge: age, MaxBytes: size, Discard: jetstream.DiscardNew, Duplicates: 2 * time.Minute,
		AllowRollup: true, DenyDelete: true, AllowDirect: true,
	}
}

// openStreams creates what is missing and brings what is there to this configuration. It returns the names of those that
// are other streams than they were when this node looked last, whoever made them.
func (s *Store) openStreams(ctx context.Context) (anew map[string]bool, err error) {
	anew = map[string]bool{}
	replicas := s.replicasWanted()
	for i, cfg := range s.streamConfigs() {
		for {
			cfg.Replicas = replicas
			var made time.Time
			if made, err = s.openStream(ctx, cfg); err == nil {
				was, known := s.made[cfg.Name]
				anew[cfg.Name] = known && !made.Equal(was)
				s.made[cfg.Name] = made
			}
			// The first stream is small and finds out how many servers there are for it.
			if i > 0 || replicas == 1 || !fewerServers(err) {
				break
			}
			replicas--
		}
		if err != nil {
			return anew, fmt.Errorf("stream %s with %d replicas: %w", cfg.Name, replicas, err)
		}
	}
	if was := s.replicas.Swap(int64(replicas)); was > 0 && int64(replicas) > was {
		s.log.Info("streams have more replicas now", "replicas", replicas, "before", was)
	}
	return anew, nil
}

// replicasMost is enough to lose one server; more only cost.
const replicasMost = 3

// replicasWanted is where openStreams begins to try.
func (s *Store) replicasWanted() int {
	switch {
	case s.link.Embedded():
		return 1
	case s.link.Store.ConnectedClusterName() == "":
		return 1
	default:
		return replicasMost
	}
}

// mayGrow reports whether servers that joined later could hold more replicas.
func (s *Store) mayGrow() bool { return int(s.replicas.Load()) < s.replicasWanted() }

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

// streamTimeout is how long the making of one stream may take, at least: it is an election, where a write is none.
const streamTimeout = 5 * time.Second

// openStream creates the stream, or brings it to this configuration. It never takes replicas away: what is lost for a
// while comes back. It returns when the stream was made.
func (s *Store) openStream(ctx context.Context, cfg jetstream.StreamConfig) (made time.Time, err error) {
	// A cluster without a leader does not answer at all.
	ctx, cancel := context.WithTimeout(ctx, max(s.cfg.StoreTimeout, streamTimeout))
	defer cancel()
	have, err := s.link.JS.Stream(ctx, cfg.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		if err := s.unread(cfg.Name); err != nil {
			return made, err
		}
		if have, err = s.link.JS.CreateStream(ctx, cfg); err == nil {
			if err := s.syncMeta(cfg); err != nil {
				return made, err
			}
			if cfg.Name == link.GiftStream {
				s.Gifts.know(have.CachedInfo())
			}
			return have.CachedInfo().Created, nil
		}
		if !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			return made, err
		}
		have, err = s.link.JS.Stream(ctx, cfg.Name) // another node was faster
	}
	if err != nil {
		return made, err
	}
	is := have.CachedInfo().Config
	cfg.FirstSeq, cfg.Replicas = is.FirstSeq, max(cfg.Replicas, is.Replicas)
	if cfg.Name == link.GiftStream {
		s.Gifts.know(have.CachedInfo())
		cfg.Metadata = map[string]string{}
		for _, key := range []string{ledgerKey, voidKey} {
			if v := is.Metadata[key]; v != "" {
				cfg.Metadata[key] = v
			}
		}
	}
	if _, err = s.link.JS.UpdateStream(ctx, cfg); err == nil {
		err = s.syncMeta(cfg)
	}
	return have.CachedInfo().Created, err
}

// syncMeta brings to disk what the embedded server says of a stream. It does so itself, except where the stream is written behind: a
// power cut would leave a stream that can't be read.
func (s *Store) syncMeta(cfg jetstream.StreamConfig) error {
	if !s.link.Embedded() || cfg.Storage == jetstream.MemoryStorage {
		return nil
	}
	path := s.storePath(cfg.Name)
	names, err := filepath.Glob(filepath.Join(path, "*"))
	for _, name := range append(names, path, filepath.Dir(path)) {
		f, openErr := os.Open(name)
		if openErr != nil {
			return errors.Join(err, openErr)
		}
		err = errors.Join(err, f.Sync(), f.Close())
	}
	return err
}

// storePath is where an embedded stream lies on disk, and for other servers its name.
func (s *Store) storePath(stream string) string {
	if !s.link.Embedded() {
		return "the stream " + stream
	}
	return s.link.StreamDir(stream)
}

// unread returns an error when a stream that the embedded server does not know lies on disk all the same: it was damaged, and
// making it anew would destroy what is left.
func (s *Store) unread(stream string) error {
	if !s.link.Embedded() {
		return nil
	}
	path := s.storePath(stream)
	left, err := os.ReadDir(path)
	if err != nil || len(left) == 0 {
		return nil // nothing is there to be kept
	}
	return fmt.Errorf("%w: %s can't be read; put a copy of it back, or move it away to begin a new one", ErrLedger, path)
}
