package fanout

import (
	"context"
	"fmt"
	"time"

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
	rulesStream    = "liveroom_rules"
	auditStream    = "liveroom_audit"
	revokedBucket  = "liveroom_revoked"
)

// Bounds of the streams that have no setting; together with the ledger's they are what the data directory may hold.
const (
	likesBytes    = 256 << 20
	likeLogBytes  = 256 << 20
	settingsBytes = 256 << 20
	nodesBytes    = 1 << 20
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
type buckets struct{ settings, nodes, revoked jetstream.KeyValue }

// openStreams creates what is missing and brings what is there to this configuration.
func (f *Fabric) openStreams(ctx context.Context) (b buckets, err error) {
	replicas := f.cfg.Replicas
	if replicas == 0 {
		replicas = 1
		if f.server == nil {
			replicas = min(3, len(f.live.Servers()))
		}
	}
	// Written behind: R1 only, and only where the server would otherwise sync each write (see doc.go).
	likesMode := jetstream.DefaultPersistMode
	if f.server != nil {
		likesMode = jetstream.AsyncPersistMode
	}
	streams := []jetstream.StreamConfig{
		{
			Name: giftStream, Subjects: []string{giftPrefix + "*"}, Storage: jetstream.FileStorage, Replicas: replicas,
			Discard: jetstream.DiscardNew, MaxBytes: f.cfg.GiftBytes, MaxAge: f.cfg.GiftAge, Duplicates: f.cfg.GiftRetry,
			RePublish:   &jetstream.RePublish{Source: giftPrefix + "*", Destination: roomPrefix + "{{wildcard(1)}}." + kindGift},
			AllowDirect: true, DenyDelete: true,
		},
		{
			Name: recentStream, Subjects: []string{roomPrefix + "*." + kindDanmaku}, Storage: jetstream.MemoryStorage, Replicas: 1,
			MaxBytes: f.cfg.RecentBytes, MaxAge: f.cfg.RecentAge, MaxMsgsPerSubject: int64(f.cfg.RecentPerRoom),
			Duplicates: min(f.cfg.RecentAge, time.Minute), AllowDirect: true,
		},
		{
			Name: likesStream, Subjects: []string{likesPrefix + "*"}, Storage: jetstream.FileStorage, Replicas: replicas,
			AllowMsgCounter: true, MaxMsgsPerSubject: 1, MaxBytes: likesBytes, MaxAge: f.cfg.LikesAge, Duplicates: likeWindow,
			AllowDirect: true, PersistMode: likesMode,
		},
	}
	streams = append(streams, jetstream.StreamConfig{
		Name: rulesStream, Subjects: []string{rulesSubject}, Storage: jetstream.FileStorage, Replicas: replicas,
		MaxMsgs: rulesKept, MaxBytes: rulesBytes, MaxMsgSize: rulesBytes / rulesKept, AllowDirect: true, DenyDelete: true,
		RePublish: &jetstream.RePublish{Source: rulesSubject, Destination: rulesNewsSubject, HeadersOnly: true},
	}, jetstream.StreamConfig{
		Name: auditStream, Subjects: []string{auditPrefix + "*"}, Storage: jetstream.FileStorage, Replicas: replicas,
		MaxMsgsPerSubject: auditPerRoom, MaxBytes: auditBytes, MaxAge: auditAge, AllowDirect: true, DenyDelete: true,
	})
	if f.server != nil {
		streams = append(streams, jetstream.StreamConfig{
			Name: likeLogStream, Subjects: []string{likeLogSubject}, Storage: jetstream.FileStorage, Replicas: 1,
			MaxBytes: likeLogBytes, MaxAge: likeLogAge, Duplicates: time.Second, AllowDirect: true,
		})
	}
	for _, s := range streams {
		if _, err := f.js.CreateOrUpdateStream(ctx, s); err != nil {
			return b, fmt.Errorf("stream %s: %w", s.Name, err)
		}
	}
	b.settings, err = f.js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{
		Bucket: settingsBucket, Storage: jetstream.FileStorage, Replicas: replicas, History: 1, TTL: f.cfg.SettingsAge,
		MaxBytes:  settingsBytes,
		RePublish: &jetstream.RePublish{Source: "$KV." + settingsBucket + ".*", Destination: roomPrefix + "{{wildcard(1)}}." + kindSettings},
	})
	if err != nil {
		return b, fmt.Errorf("bucket %s: %w", settingsBucket, err)
	}
	b.nodes, err = f.js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{
		Bucket: nodesBucket, Storage: jetstream.FileStorage, Replicas: replicas, History: 1, TTL: nodesAge, MaxBytes: nodesBytes,
	})
	if err != nil {
		return b, fmt.Errorf("bucket %s: %w", nodesBucket, err)
	}
	b.revoked, err = f.js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{
		Bucket: revokedBucket, Storage: jetstream.FileStorage, Replicas: replicas, History: 1, TTL: RevokedFor, MaxBytes: revokedBytes,
	})
	if err != nil {
		return b, fmt.Errorf("bucket %s: %w", revokedBucket, err)
	}
	return b, nil
}
