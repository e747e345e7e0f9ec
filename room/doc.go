// Package room is a live room on one node: who is in it, what may be said in it, and what becomes of it. A [Hub] holds the
// node's rooms and users.
//
// The one idea: admission ([Room.Handle]) and showing ([Feed]) meet only on the bus. What is admitted is published; what a room
// shows, its [audience.Audience], is what comes back on the feed. So a message takes the same way whether its sender is here, on
// another node, or a platform's back end.
//
// # What a message passes
//
// [Room.Handle] asks in this order: the memory of first answers; closed, banned, muted, role; the rules for text or the
// catalogue; repeated text and slow mode; the gate over connection, user, user in the room and room, all or nothing;
// then the bus. What is refused has taken nothing from anybody.
//
// A gift whose outcome is unknown and whose id is sent again goes straight to the ledger, past a closed room and the
// gate, since it may have been stored. A user refused by limits again and again is muted, then its
// session is closed.
//
// # When the node is behind
//
// [Config.Lag] says how late the node comes to what viewers send. Over [Config.Behind] the hub climbs a ladder: ticks double, three
// times; likes are refused; danmaku are, by halves; newcomers are ([Hub.Newcomers]). Gifts and moderation always pass, and
// wait at most 100 ms for a stretched tick. Answers to danmaku and likes then go with the next flush. A second under 20 ms
// takes all of it back. Danmaku and likes stand in a line of the hub's, and a flush makes way every 128 members, so that
// gifts and small rooms wait for neither.
//
// # Concurrency
//
// All exported methods may be called from any goroutine, except that one member's Receive is called from one goroutine
// at a time. The order of locks is package lock's. Under a lock there is map and slice work
// only. Nothing is delivered, published, stored or encoded under one.
//
// An audience's runner exists while the room has something to show, a room's folder goroutine while likes wait for the bus. The hub's sweeper lives as long as the
// hub. [Hub.Close] waits for all of them.
//
// # Memory
//
// Rooms go when nobody is in them, nothing is pending and their buckets are full; users when they have no session,
// their buckets are full and their answers have aged. Both are bounded in number, and at the bound newcomers are
// refused; nothing live is evicted.
//
// # What it does not do
//
// It opens no socket, verifies no token, knows neither NATS nor Redis, and stores nothing itself.
//
// Files: config.go, bus.go (what it is plugged into); hub.go, registry.go (rooms and users come and go),
// room.go; join.go, member.go, speaker.go, user.go (who speaks, and what is remembered of it); admission.go (what every message
// passes), subjects.go (whose buckets pay), messages.go, words.go (what must not be said), gifts.go (what becomes of each kind), hooks.go (what the platform is asked before), custom.go (events of a platform's own), catalogue.go (what can be given), review.go (what waits for staff), notes.go (what back ends alone are told); policy.go (settings), amend.go (how they change, and who is told), acts.go (what is stored beside them), rank.go (who may change them), moderation.go, audit.go (acts,
// and taking them back), erase.go (what is forgotten), speech.go (who may speak, and how), marks.go (bans that guests do not walk around), owed.go (acts while the store is away), person.go (who somebody is);
// overload.go (what is given up while the node is behind), stats.go (what a host sees), visitors.go and shows.go (who is there, and has been), shield.go and raidplay.go (raids, and what a shield would have done), metrics.go.
package room
