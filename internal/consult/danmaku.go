package consult

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"liveroom/internal/hook"
	"liveroom/protocol"
	"liveroom/room"
)

// TypeDanmaku is the type of a call that asks what may be shown.
const TypeDanmaku = "danmaku.check"

// danmakuData is what a call says: what a room has said within a tick, in its order.
type danmakuData struct {
	Room     string    `json:"room"`
	Messages []message `json:"messages"`
}

type message struct {
	ID    string        `json:"id"` // as the user's client chose it
	User  protocol.User `json:"user"`
	Text  string        `json:"text"`
	Color string        `json:"color,omitempty"`
	Mode  protocol.Mode `json:"mode,omitempty"`
	Reply string        `json:"reply,omitempty"` // the mid of the message that it answers
}

// Verdicts is the answer.
type Verdicts struct {
	Verdicts []Verdict `json:"verdicts"` // of each message, in their order

	want int
}

// Verdict is what is to become of one message.
type Verdict struct {
	Do     string `json:"do"`     // allow, replace, sender_only, hold, refuse
	Text   string `json:"text"`   // of replace: the new one; of refuse: for the sender, in the sender's language; of hold: for staff
	Reason string `json:"reason"` // of refuse: muted, or anything else
}

// Check implements [hook.Answer]. What a single verdict says is looked at when it is carried out.
func (v *Verdicts) Check() error {
	if len(v.Verdicts) != v.want {
		return fmt.Errorf(`want "verdicts" for %d messages; received %d`, v.want, len(v.Verdicts))
	}
	return nil
}

// Danmaku asks the platform what may be shown.
type Danmaku struct {
	cfg     Config
	maxText int // of a text in its place, in characters
	told    complaints
}

var _ room.DanmakuHook = (*Danmaku)(nil)

// NewDanmaku returns what asks about danmaku.
func NewDanmaku(cfg Config, maxText int) *Danmaku { return &Danmaku{cfg: cfg, maxText: maxText} }

// Check implements [room.DanmakuHook].
func (d *Danmaku) Check(roomID string, drafts []*room.Draft) []room.Verdict {
	out := make([]room.Verdict, len(drafts))
	verdicts, err := d.ask(context.Background(), roomID, drafts) // whose askers may go: what they have said goes ahead without them
	if err != nil {
		d.told.tell(&d.cfg, roomID, err)
		for i := range out {
			out[i] = d.unanswered()
		}
		return out
	}
	for i, v := range verdicts {
		if out[i], err = d.verdict(v); err != nil {
			d.told.tell(&d.cfg, roomID, err)
			out[i] = d.unanswered()
		} else {
			d.cfg.count(v.Do)
		}
	}
	return out
}

func (d *Danmaku) ask(ctx context.Context, roomID string, drafts []*room.Draft) ([]Verdict, error) {
	data := danmakuData{Room: roomID, Messages: make([]message, len(drafts))}
	for i, m := range drafts {
		data.Messages[i] = message{ID: m.Request.ID, User: m.User, Text: m.Request.Text, Color: m.Request.Color, Mode: m.Request.Mode, Reply: m.Request.Reply}
	}
	answer := Verdicts{want: len(drafts)}
	// A question changes nothing, so that it may be asked again.
	err := d.cfg.Platform.Call(ctx, hook.Call{ID: "danmaku_" + rand.Text(), Type: TypeDanmaku, Data: data, Repeat: true}, &answer)
	return answer.Verdicts, err
}

// holder is who holds what the platform wants to be held, see [room.Cause].
const holder = "hook"

// unanswered is what becomes of a message of which the platform has said nothing.
func (d *Danmaku) unanswered() room.Verdict {
	d.cfg.count(saidNothing)
	switch d.cfg.OnTimeout {
	case SenderOnly:
		return room.Verdict{SenderOnly: true, Refused: &protocol.Error{Reason: protocol.ReasonRoomBusy}}
	case Hold:
		return room.Verdict{Held: &room.Cause{By: holder, Detail: "no answer of the platform"}}
	}
	return room.Verdict{}
}

// verdict reads what is to become of one message. Its error is that this can't be done.
func (d *Danmaku) verdict(v Verdict) (out room.Verdict, _ error) {
	switch v.Do {
	case saidAllow:
	case saidReplace:
		text, err := protocol.CleanText(v.Text, d.maxText)
		if err != nil {
			return out, fmt.Errorf(`the "text" of replace can't be shown: %w`, err)
		}
		out.Text = text
	case saidSenderOnly:
		out.SenderOnly = true
	case saidHold:
		out.Held = &room.Cause{By: holder, Detail: hook.Words(v.Text)}
	case saidRefuse:
		out.Refused = &protocol.Error{Reason: protocol.ReasonRejected, Detail: hook.Words(v.Text)}
		if v.Reason == string(protocol.ReasonMuted) {
			out.Refused.Reason = protocol.ReasonMuted
		}
	default:
		return out, errors.New(`"do" is none of allow, replace, sender_only, hold, refuse`)
	}
	return out, nil
}
