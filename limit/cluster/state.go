package cluster

import "fmt"

// stage is where a lease is with its calls.
//
//	stage      what is under way                              moves to
//	resting    nothing                                        due, recalling
//	due        a call waits in its lane's queue               resting, calling
//	calling    a call is at the store                         resting
//	recalling  the owner of a claim is asked to give it back  resting
type stage uint8

const (
	resting stage = iota
	due
	calling
	recalling
)

// claimState is who has the bucket of a rule that one node may have for itself.
//
//	state      who has it, as far as this node knows          moves to
//	unclaimed  nobody knows yet: the next call claims it      home, shared
//	home       this node; its own bucket is the level         giving, unclaimed, shared
//	giving     this node had, and gives it back               unclaimed, shared
//	shared     nobody: each node draws what it needs          unclaimed
type claimState uint8

const (
	unclaimed claimState = iota
	home
	giving
	shared
)

// slotState is how far a slot has come that one decision asked for.
//
//	state     whose it is                                     moves to
//	asked     the store has not answered                      granted, denied, failed, unwanted
//	granted   the decision's, if it goes ahead                kept, freed
//	denied    nobody's: there is none
//	failed    nobody knows: it comes back by itself
//	unwanted  nobody waits any more; the store may say yes    freed
//	kept      the request's, until Gate.Release               freed
//	freed     the store's, once it hears of it
type slotState uint8

const (
	asked slotState = iota
	granted
	denied
	failed
	unwanted
	kept
	freed
)

// The tables, a bit for each state that may follow.
var (
	stageMoves = [...]uint8{
		resting:   1<<due | 1<<recalling,
		due:       1<<resting | 1<<calling,
		calling:   1 << resting,
		recalling: 1 << resting,
	}
	claimMoves = [...]uint8{
		unclaimed: 1<<home | 1<<shared,
		home:      1<<giving | 1<<unclaimed | 1<<shared,
		giving:    1<<unclaimed | 1<<shared,
		shared:    1 << unclaimed,
	}
	slotMoves = [...]uint8{
		asked:    1<<granted | 1<<denied | 1<<failed | 1<<unwanted,
		granted:  1<<kept | 1<<freed,
		unwanted: 1 << freed,
		kept:     1 << freed,
		freed:    0,
	}
)

func (s stage) String() string { return [...]string{"resting", "due", "calling", "recalling"}[s] }

func (s claimState) String() string { return [...]string{"unclaimed", "home", "giving", "shared"}[s] }

func (s slotState) String() string {
	return [...]string{"asked", "granted", "denied", "failed", "unwanted", "kept", "freed"}[s]
}

// move moves one of the states. It panics on a move that is not in the table: tokens would be counted twice, or lost.
func move[S interface {
	~uint8
	String() string
}](at *S, moves []uint8, to S) {
	if moves[*at]&(1<<to) == 0 {
		panic(fmt.Sprintf("cluster: a %T goes from %v to %v", to, *at, to))
	}
	*at = to
}
