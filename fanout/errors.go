package fanout

import "errors"

var (
	// ErrRefused says that nothing was stored and nothing will be.
	ErrRefused = errors.New("fanout: refused")
	// ErrUnknown says that the store did not answer in time: the write may have happened or may still happen.
	// The same id may be sent again within [Config.GiftRetry].
	ErrUnknown = errors.New("fanout: outcome unknown")
	// ErrDisconnected says that NATS is away and nothing was sent.
	ErrDisconnected = errors.New("fanout: not connected")
	// ErrForbidden says that NATS does not let this node's user do it and nothing was sent.
	ErrForbidden = errors.New("fanout: forbidden by nats")
	// ErrConflict says that the settings were changed since the revision that the caller knows.
	ErrConflict = errors.New("fanout: settings changed meanwhile")
	// ErrNotFound says that the ledger has no such gift.
	ErrNotFound = errors.New("fanout: no such gift")
	// ErrSubscribed says that the room has a subscription on this node already.
	ErrSubscribed = errors.New("fanout: room already subscribed")
	// ErrNoNode says that no such node is there, or that it answers to no such verb.
	ErrNoNode = errors.New("fanout: no such node")
	// ErrTimeout says that a node did not answer in time; it may have acted.
	ErrTimeout = errors.New("fanout: no answer in time")
	// ErrBusy says that a node has more questions than it can take; it did not act.
	ErrBusy = errors.New("fanout: too many questions")
	// ErrClosed says that [Fabric.Close] has begun.
	ErrClosed = errors.New("fanout: closed")
)
