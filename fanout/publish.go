package fanout

import (
	"fmt"

	"liveroom/protocol"
)

// Publish sends one message of a live class to all nodes that have the room, this one included: at most once, without
// waiting. ErrDisconnected when NATS is away, ErrForbidden when it is known to let nobody hear it; nothing is kept for later.
func (f *Fabric) Publish(c protocol.Class, room string, message []byte) error {
	for _, road := range []*road{f.roads.live[c], f.roads.of(roadRooms)} {
		if err := road.open(); err != nil {
			return err
		}
	}
	return f.publish(roomSubject(room, c.String()), message)
}

func (f *Fabric) publish(subject string, payload []byte) error {
	// Without a reconnect buffer nats.go itself refuses while it reconnects.
	if err := f.live.Publish(subject, payload); err != nil {
		return fmt.Errorf("%w: %w", ErrDisconnected, err)
	}
	return nil
}

// mayStore returns ErrRefused when a write would be sent to nobody.
func (f *Fabric) mayStore(road roadName) error {
	if !f.store.IsConnected() {
		return fmt.Errorf("%w: %w", ErrRefused, ErrDisconnected)
	}
	if f.refusing() {
		return fmt.Errorf("%w: %w", ErrRefused, ErrStoreFull)
	}
	if err := f.roads.of(road).open(); err != nil {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return nil
}
