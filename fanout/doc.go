// Package fanout carries a room's messages between nodes, and keeps what must outlive a node: gifts, like totals and
// room settings. A node alone uses the same path over a NATS server embedded in its own process.
//
// The one idea: everything that concerns a room arrives on one subscription, lr.room.<room>.>, and so in one order on each node (the same on all nodes for what one node
// publishes, and for gifts).
// What is stored comes back the same way, because the streams re-publish onto the room's subjects; what was lost on
// the way is noticed by comparing sequences, and read from the store before anything that follows is delivered.
//
// # Subjects
//
//	lr.room.<room>.danmaku    one danmaku event, the JSON that viewers get and nothing else; a platform that must
//	                          keep or inspect all admitted danmaku subscribes to lr.room.*.danmaku
//	lr.room.<room>.control    one event of the control lane
//	lr.room.<room>.gift       a gift, re-published by the ledger with Nats-Sequence and Nats-Last-Sequence
//	lr.room.<room>.settings   the room's settings, re-published by their bucket
//	lr.room.<room>.likes      the room's like total, decimal
//	lr.room.<room>.seen       how far somebody has seen the room: gift sequence, settings revision, like total
//	lr.gift.<room>            what the ledger stores (stream liveroom_gifts)
//	lr.likes.<room>           what the like counters store (stream liveroom_likes)
//	lr.likelog                totals that were shown to somebody (stream liveroom_likelog, embedded server only)
//	lr.rules                  sets of limits (stream liveroom_rules); lr.rulesnews tells that there is a new one
//	lr.node.<node>.presence   a node's rooms, every two seconds
//	lr.node.<node>.probe.*    a node's messages to itself, one subject per connection
//
// # Promises
//
// Danmaku and control go over core NATS: at most once, never buffered over a reconnect, in order per publisher. A
// gift is on disk before [Fabric.StoreGift] returns (embedded: synced; in a cluster: on a majority of
// min(3, servers) replicas, whose servers must sync too). A gift whose re-publishing was lost is found by the next
// gift's previous sequence, by another node's presence, by the answer to a repeated id, or by a sweep over the
// subscribed rooms every [Config.SweepEvery]. A like total is stored before it is announced and never falls.
//
// Of the embedded server's streams only gifts, settings and the like log (one record a second, whatever the number of
// rooms) wait for the disk; like counters are written behind and repaired from the log after a crash; recent danmaku
// live in memory.
//
// # Ages
//
// Nothing stays for ever: gifts [Config.GiftAge], a room's like total [Config.LikesAge] after its last like, settings
// [Config.SettingsAge] after their last change (renewed while the room has members somewhere), recent danmaku
// [Config.RecentAge], a node's start number a week.
//
// # Concurrency
//
// All methods of [Fabric] may be called from any goroutine. The calls to one [Handler] are sequential and come from
// one goroutine, which belongs to the room's subscription; a slow handler delays its own room alone, and beyond
// [Config.PendingMessages] that room loses messages, which is counted.
//
// # What it does not do
//
// It decodes no event, knows no session or user, decides nothing about limits, and delivers nothing to a room without
// a subscription. While NATS is away it refuses; serving a room locally meanwhile is the room's decision.
package fanout
