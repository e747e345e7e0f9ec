package fanout

import "fmt"

// PublishDanmaku sends one danmaku event to all nodes that have the room, this one included: at most once, without
// waiting. ErrDisconnected when NATS is away, ErrForbidden when it is known to let nobody hear it; nothing is kept for later.
func (f *Fabric) PublishDanmaku(room string, event []byte) error {
	if err := f.mayShow(roadDanmaku); err != nil {
		return err
	}
	return f.publish(roomSubject(room, kindDanmaku), event)
}

// PublishControl sends one event of the control lane, as PublishDanmaku does.
func (f *Fabric) PublishControl(room string, event []byte) error {
	if err := f.mayShow(roadControl); err != nil {
		return err
	}
	return f.publish(roomSubject(room, kindControl), event)
}

func (f *Fabric) publish(subject string, payload []byte) error {
	// Without a reconnect buffer nats.go itself refuses while it reconnects.
	if err := f.live.Publish(subject, payload); err != nil {
		return fmt.Errorf("%w: %w", ErrDisconnected, err)
	}
	return nil
}

// mayShow returns ErrForbidden when nobody, or nobody here, would hear it.
func (f *Fabric) mayShow(road roadName) error {
	if err := f.roads.of(road).open(); err != nil {
		return err
	}
	return f.roads.of(roadRooms).open()
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
