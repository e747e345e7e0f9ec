// Package fanout carries a room's messages between nodes, and keeps what must outlive a node: gifts, like totals and
// room settings. A node alone uses the same path over a NATS server embedded in its own process.
//
// The one idea: everything that concerns a room arrives on one subscription, lr.room.<room>.>, and so in one order on
// each node (the same on all nodes for what one node publishes, and for gifts; what different nodes publish at the same time
// may lie otherwise on another node, also with one server).
// What is stored comes back the same way, because the streams re-publish onto the room's subjects; what was lost on
// the way is noticed by comparing sequences, and read from the store before anything that follows is delivered.
//
// # Subjects
//
//	lr.room.<room>.danmaku    one danmaku event, the JSON that viewers get and nothing else; a platform that must
//	                          keep or inspect all admitted danmaku subscribes to lr.room.*.danmaku
//	lr.room.<room>.<class>    likewise for each live class of package protocol's kinds; control: a command to the nodes
//	lr.room.<room>.gift       a gift, re-published by the ledger with Nats-Sequence and Nats-Last-Sequence
//	lr.room.<room>.settings   the room's settings, re-published by their bucket
//	lr.room.<room>.likes      the room's like total, decimal
//	lr.room.<room>.seen       how far somebody has seen the room: gift sequence, settings revision, like total
//	lr.gift.<room>            what the ledger stores (stream liveroom_gifts)
//	lr.intent.<key>           a gift that is being paid for (stream liveroom_intents); lr.gift.==end=<attempt> ends its attempt
//	lr.likes.<room>           what the like counters store (stream liveroom_likes)
//	lr.likelog                totals that were shown to somebody (stream liveroom_likelog, embedded server only)
//	lr.revokednews.<key>      tells that something was revoked
//	lr.room.==<node>.*        a node's messages to itself over the roads of rooms, see roads.go
//	lr.rules                  sets of limits (stream liveroom_rules); lr.rulesnews tells that there is a new one
//	lr.audit.<room>           what moderators did (stream liveroom_audit)
//	lr.node.<node>.presence   who a node is and its rooms, every two seconds
//	lr.node.<node>.whole      asks a node to announce all of its rooms
//	lr.node.<node>.probe.*    a node's messages to itself, one subject per connection
//	lr.node.<node>.<verb>     a question to a node; lr.nodes.<verb> one to all; lr.node.<node>.parcel hands out what does
//	                          not fit into one message
//	lr.nodes.who              a starting node asks who is there
//
// # Promises
//
// Danmaku and control go over core NATS: at most once, never buffered over a reconnect, in order per publisher. A
// gift is on disk before [Fabric.StoreGift] returns (embedded: synced; in a cluster: on a majority of
// min(3, servers) replicas, whose servers must sync too, which is measured at start; how many servers can hold the streams is found out by trying, and
// tried again when one was missing, see [Config.GrowEvery]). A gift whose re-publishing was lost is found by the next
// gift's previous sequence, by another node's presence, by the answer to a repeated id, or by a sweep over the
// subscribed rooms every [Config.SweepEvery]. A like total is stored before it is announced and never falls.
//
// Of the embedded server's streams only gifts, settings and the like log (one record a second, whatever the number of
// rooms) wait for the disk; like counters are written behind and repaired from the log after a crash; recent danmaku
// live in memory.
//
// # Following
//
// What others decide (limits, revocations, settings, secrets, who is there, what rooms have missed) is followed by one
// kind of loop, see follow.go: a look at the store in each period, on news and after each return of a connection. Until its first complete
// look after a return, and when the last one is too old, a follower does not stand, and [Fabric.Follows] says so.
//
// NATS tells of a missing permission later and to nobody. Each class of subjects is tried at the start and then
// over the same subjects and operations, see roads.go; what is known to be shut is [ErrForbidden].
//
// # Nodes
//
// Presence is said in beats: whole every 15th beat and when somebody asks, and between them what has changed; who has missed a
// beat asks. 10,000 rooms are 414 KB whole (14 KB/s); of changes a tenth of the rooms each beat are 20 KB/s, all of
// them 207 KB/s, none 34 B/s. Nothing in it depends on clocks that agree: instants are the receiver's own.
//
// Nodes on the same NATS servers must share their quota store and have ids of their own. A node that starts asks who is
// there and is refused otherwise ([ErrNotShared], [ErrNodeTaken]); a crashed node answers nothing, and its id is free
// at once. Of nodes that start in the same moment the later ones learn it from presence and must end, see
// [Fabric.Ended]. So must a node that was paused or cut off while another was let in under its id.
//
// # When the store is lost
//
// A NATS server that comes back without its streams is noticed at the reconnect. They are made anew, beyond all sequences that
// nodes know, so that gifts, revisions and versions go on growing; limits, secrets, settings of the rooms that
// have members and like totals that were shown are written again by the nodes that know them. Totals below what a
// node has shown are found by the sweep as well, and raised once, whoever sees them. Gifts, the audit and what was
// revoked are gone. All this is done by nodes that lived through it: when all nodes stop as well, nothing is known.
//
// # When the store is not whole
//
// Apart from the store a node keeps marks ([MarksFile] in the data directory): the ledger's name, where it ended, how many of
// its sequences hold no gift, and the highest sequence of the other streams. At the start a ledger that is another one, shorter,
// or has lost gifts is an error with both numbers ([Fabric.LedgerWhole]); it gets another name ([Fabric.LedgerID]), which voids all
// cursors, and goes on beyond what was given out. An embedded one is read whole once after each start, since a damaged record
// shows when it is read. A store that has lost revocations is refused, and a stream that can't be read is never made anew over what is left.
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
// [Config.PendingMessages] that room loses messages, which is counted exactly within [Config.ProbeEvery]. An
// [Answerer] runs on one of eight goroutines of its verb.
//
// # What it does not do
//
// It decodes no event, knows no session or user, decides nothing about limits, and delivers nothing to a room without
// a subscription. While NATS is away it refuses; serving a room locally meanwhile is the room's decision.
package fanout
