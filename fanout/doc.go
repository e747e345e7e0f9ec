// Package fanout is one node's end of what the nodes share: a room's messages, and what must outlive a node (gifts, like
// totals, settings, limits). A node alone uses the same path over a NATS server embedded in its own process.
//
// The one idea: everything that concerns a room arrives on one subscription, lr.room.<room>.>, and so in one order on
// each node (the same on all nodes for what one node publishes, and for gifts; what different nodes publish at the same time
// may lie otherwise on another node, also with one server).
// What is stored comes back the same way, because the streams re-publish onto the room's subjects; what was lost on
// the way is noticed by comparing sequences, and read from the store before anything that follows is delivered.
//
// # Parts
//
// The parts lie in packages below, each with its own promise; this package makes them, and owns the order in which they begin and
// end. Arrows run down, and the parts do not know each other:
//
//	fanout ─▶ feed (rooms, over a bus and a store that are interfaces to it)
//	       ─▶ store, presence (who is there), question (what nodes ask)
//	       ─▶ link (connections, what is read of streams), which all stand on
//
// They open in the order link, store, feed, presence, question, and close in reverse: rooms and questions are refused, the
// loops end, likes that wait are stored, goodbye is said, what has arrived is delivered, connections and server end.
//
// Another bus in place of NATS for live traffic is a package with what [feed.Bus] asks for, and the one line in fabric.go that makes
// it.
//
// Files: fabric.go, the parts together, and whether all is well; restore.go, a store out of a backup; config.go.
//
// # Subjects
//
//	lr.room.<room>.danmaku    one danmaku event, the JSON that viewers get and nothing else; a platform that must
//	                          keep or inspect all admitted danmaku subscribes to lr.room.*.danmaku
//	lr.room.<room>.<class>    likewise for each live class of package protocol's kinds; control: a command to the nodes
//	lr.room.<room>.gift       a gift, re-published by the ledger with Nats-Sequence and Nats-Last-Sequence
//	lr.room.<room>.settings   the room's settings, re-published by their bucket
//	lr.room.<room>.act        what a moderator did, not yet in the settings, re-published by its stream
//	lr.room.<room>.likes      the room's like total, decimal
//	lr.room.<room>.held       a message that waits for staff, and what becomes of it, re-published by its stream
//	lr.room.<room>.seen       how far somebody has seen the room: gift sequence, settings revision, like total, number of the last act
//	lr.gift.<room>            what the ledger stores (stream liveroom_gifts)
//	lr.consumer.<name>        where a reader of what was admitted is (stream liveroom_consumers)
//	lr.letter.<webhook>.<id>  an event that a webhook did not take (stream liveroom_letters)
//	lr.intent.<key>           a gift that is being paid for (stream liveroom_intents); lr.gift.==end=<attempt> ends its attempt
//	lr.likes.<room>           what the like counters store (stream liveroom_likes)
//	lr.likelog                totals that were shown to somebody (stream liveroom_likelog, embedded server only)
//	lr.revokednews.<key>      tells that something was revoked
//	lr.room.==<node>.*        a node's messages to itself over the roads of rooms, see package link
//	lr.rules                  sets of limits (stream liveroom_rules); lr.rulesnews tells that there is a new one
//	lr.filter                 the platform's lists of words (stream liveroom_filter); lr.filternews tells that there is a new one
//	lr.act.<room>             mutes, bans and deletions since the settings were stored (stream liveroom_acts)
//	lr.audit.<room>           what moderators did (stream liveroom_audit)
//	lr.catalogue              catalogues of gifts (stream liveroom_catalogue); lr.cataloguenews tells that there is a new one
//	lr.erasure.<what>         what is to be forgotten (stream liveroom_erasures); lr.erasurenews.<what> tells of it
//	lr.held.<room>.<mid>      what is held, and for a while how it was decided (stream liveroom_held)
//	lr.said.<room>            danmaku, re-published by liveroom_recent or taken from the rooms' subjects, and what rooms note, for who reads on (stream liveroom_events, with lr.room.*.likes)
//	lr.node.<node>.presence   who a node is and its rooms, every two seconds
//	lr.node.<node>.whole      asks a node to announce all of its rooms
//	lr.node.<node>.probe.*    a node's messages to itself, one subject per connection
//	lr.node.<node>.<verb>     a question to a node; lr.node.<node>.parcel hands out what does not fit into one message
//	lr.nodes.who              a starting node asks who is there
//
// # Promises
//
// Danmaku and control go over core NATS: at most once, never buffered over a reconnect, in order per publisher. A
// gift is on disk before [store.Ledger.StoreGift] returns (embedded: synced; in a cluster: on a majority of
// min(3, servers) replicas, whose servers must sync too, which is measured at start; how many servers can hold the streams is found out by trying, and
// tried again when one was missing, see [Config.GrowEvery]). A gift whose re-publishing was lost is found by the next
// gift's previous sequence, by another node's presence, by the answer to a repeated id, or by a sweep over the
// subscribed rooms every [Config.SweepEvery]. A like total is stored before it is announced and never falls.
//
// Of the embedded server's streams only gifts, settings and the like log (one record a second, whatever the number of
// rooms) wait for the disk; like counters are written behind and repaired from the log after a crash; recent danmaku
// live in memory.
//
// # Concurrency
//
// All methods of [Fabric] and of its parts may be called from any goroutine. The calls to one [feed.Handler] are sequential and come from
// one goroutine, which belongs to the room's subscription; a slow handler delays its own room alone, and beyond
// [Config.PendingMessages] that room loses messages, which is counted exactly within [Config.ProbeEvery]. An
// [question.Answerer] runs on one of eight goroutines of its verb.
//
// # What it does not do
//
// It decodes no event, knows no session or user, decides nothing about limits, and delivers nothing to a room without
// a subscription. While NATS is away it refuses; serving a room locally meanwhile is the room's decision.
package fanout
