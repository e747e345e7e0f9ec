package fanout

import "fmt"

// PublishDanmaku sends one danmaku event to all nodes that have the room, this one included: at most once, without
// waiting. ErrDisconnected when NATS is away; nothing is kept for later.
func (f *Fabric) PublishDanmaku(room string, event []byte) error {
	return f.publish(roomSubject(room, kindDanmaku), event)
}

// PublishControl sends one event of the control lane, as PublishDanmaku does.
func (f *Fabric) PublishControl(room string, event []byte) error {
	return f.publish(roomSubject(room, kindControl), event)
}

func (f *Fabric) publish(subject string, payload []byte) error {
	// Without a reconnect buffer nats.go itself refuses while it reconnects.
	if err := f.live.Publish(subject, payload); err != nil {
		return fmt.Errorf("%w: %w", ErrDisconnected, err)
	}
	return nil
}
