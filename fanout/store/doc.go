// Package store is what a node keeps at NATS: gifts, like totals, settings, limits, the catalogue of gifts, the platform's list of words, what is revoked, secrets, recent danmaku, and
// what moderators did.
//
// The one idea: JetStream stores, and this node remembers what it goes by, beside the store and in a file of its own. So a store
// that comes back empty, older or damaged is noticed, told what is known, and never gives a number out twice.
//
// A write that waits goes one way (put in stored.go): it is refused, stored, or unknown. Gifts that come together share the syncs of the embedded
// server's disk (groupcommit.go), and each is answered within one and a half of the store's time-outs. Each kind is a part of [Store] with its own type;
// what the parts share is the core in stored.go.
//
// # When the store is lost
//
// A NATS server that comes back without its streams is noticed at the reconnect. They are made anew, beyond all sequences that
// nodes know, so that gifts, revisions and versions go on growing; limits, the catalogue, the list of words, secrets, settings of the rooms that
// have members and like totals that were shown are written again by the nodes that know them. Totals below what a
// node has shown are found by the sweep as well, and raised once, whoever sees them. Gifts, the audit and what was
// revoked are gone. All this is done by nodes that lived through it: when all nodes stop as well, nothing is known.
//
// # When the store is not whole
//
// Apart from the store a node keeps marks ([MarksFile] in the data directory): the ledger's name, where it ended, how many of
// its sequences hold no gift, and the highest sequence of the other streams. At the start a ledger that is another one, shorter,
// or has lost gifts is an error with both numbers ([Ledger.Whole]); it gets another name ([Ledger.LedgerID]), which voids all
// cursors, and goes on beyond what was given out. An embedded one is read whole once after each start, since a damaged record
// shows when it is read. A store that has lost revocations is refused, and a stream that can't be read is never made anew over what is left.
//
// # Ages
//
// Nothing stays for ever: gifts 30 days and what was said 7 days, unless the configuration says otherwise, a room's like total 30 days after its last like, settings
// 90 days after their last change (renewed while the room has members somewhere), recent danmaku
// five minutes, who has been in a room 30 days after anybody was, a node's start number a week.
//
// # Concurrency
//
// All methods of [Store] and of its parts may be called from any goroutine. [Rooms] is called from the caller's goroutine or a loop's.
//
// Files: stored.go, the parts and the way of a write; streams.go, all streams and how long they keep what; here.go, what this node goes
// by of its rooms, and what is stored of them. Then each kind: giftledger.go, groupcommit.go (who waits), batch.go (how a group is stored), ledgercheck.go and payments.go (what is being paid for), liketotals.go, likebook.go and
// likeheal.go, roomsettings.go and acts.go (what moderators did since), held.go (what waits for staff), erasures.go (what is to be forgotten), editions.go (limits, the catalogue of gifts), revocations.go, agreed.go, archive.go (recent danmaku, audit), shows.go (who has been there), journal.go (all of it, for who reads on), readers.go (where those are), letters.go (what a webhook was not taken of), backup.go (all of it, to make another store of). Then what goes wrong:
// restore.go, a store that is lost; marks.go, what is known apart from it; storefault.go and volume_*.go, a disk that is full;
// synctrial.go, servers that do not sync.
package store
