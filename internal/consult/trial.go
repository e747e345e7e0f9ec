package consult

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"liveroom/internal/hook"
	"liveroom/protocol"
	"liveroom/room"
)

// sampleRoom is the room of samples.
const sampleRoom = "hook-test"

// TryJoin asks a platform's hook what it will be asked of joins, for a user, and reports whether nothing was wrong.
func TryJoin(ctx context.Context, t *hook.Trial, user string, attributes []string) bool {
	if t.Signatures(ctx) {
		a := Admission{names: attributes}
		data := joinData{Room: sampleRoom, User: protocol.User{ID: user}}
		t.Step(TypeJoin+" has a verdict", t.Platform.Call(ctx, hook.Call{ID: "join_" + t.ID, Type: TypeJoin, Data: data}, &a))
	}
	return t.Good()
}

// TryDanmaku asks it what it will be asked of danmaku.
func TryDanmaku(ctx context.Context, t *hook.Trial, user string, maxText int) bool {
	if t.Signatures(ctx) {
		d := NewDanmaku(Config{Platform: t.Platform}, maxText)
		t.Step(TypeDanmaku+" of a message has a verdict", d.try(ctx, user, 1, "hello"))
		t.Step(fmt.Sprintf("one of %d long messages has as many", room.MostDrafts), d.try(ctx, user, room.MostDrafts, strings.Repeat("好", min(maxText, protocol.MaxTextBytes/len("好")))))
	}
	return t.Good()
}

// try asks about n messages of one text and returns what is wrong with the answer.
func (d *Danmaku) try(ctx context.Context, user string, n int, text string) error {
	drafts := make([]*room.Draft, n)
	for i := range drafts {
		drafts[i] = &room.Draft{User: protocol.User{ID: user}, Request: &protocol.Request{ID: fmt.Sprint("t", i+1), Text: text, Mode: protocol.ModeScroll}}
	}
	verdicts, err := d.ask(ctx, sampleRoom, drafts)
	for i, v := range verdicts {
		if _, wrong := d.verdict(v); wrong != nil {
			err = errors.Join(err, fmt.Errorf("verdicts[%d]: %w", i, wrong))
		}
	}
	return err
}
