package payment

import (
	"errors"
	"fmt"
	"strings"

	"liveroom/internal/hook"
	"liveroom/protocol"
	"liveroom/room"
)

// The types of the calls.
const (
	Reserve = "gift.reserve"
	Confirm = "gift.confirm"
	Cancel  = "gift.cancel"
)

// Data is what all three calls say.
type Data struct {
	Key     string        `json:"key"`     // of the gift: one for each (room, user, id), for ever
	Attempt uint64        `json:"attempt"` // grows; of a key a later attempt begins only after the end of the one before
	Room    string        `json:"room"`
	User    protocol.User `json:"user"`
	ID      string        `json:"id"` // as the user's client chose it
	Gift    string        `json:"gift"`
	Count   int           `json:"count"`
	Price   int64         `json:"price"`         // of one, by the catalogue
	Amount  int64         `json:"amount"`        // of all
	Seq     uint64        `json:"seq,omitempty"` // of a gift that is confirmed: its number in the ledger
}

func dataOf(s *room.Sale) Data {
	return Data{
		Key:  protocol.Token(s.Room) + "/" + protocol.Token(s.Gift.User.ID) + "/" + protocol.Token(s.ID),
		Room: s.Room, User: s.Gift.User, ID: s.ID, Gift: s.Gift.Gift, Count: s.Gift.Count, Price: s.Price, Amount: s.Price * int64(s.Gift.Count),
	}
}

// Verdict is the answer to [Reserve].
type Verdict struct {
	Allow *bool `json:"allow"`
	// Of a yes.
	Charged int64  `json:"charged"` // what was reserved; 0: the amount
	Ref     string `json:"ref"`     // the platform's own name for it
	Seq     uint64 `json:"seq"`     // the key was confirmed before, under this number: nothing was reserved now
	// Of a no.
	Reason string `json:"reason"`
	Text   string `json:"text"` // for the sender, in the sender's language
}

// mostRef bounds the platform's reference, in bytes.
const mostRef = 128

// Check implements hook.Answer.
func (v *Verdict) Check() error {
	switch {
	case v.Allow == nil:
		return errors.New(`want "allow": true or false`)
	case !*v.Allow:
		return nil
	case v.Charged < 0:
		return errors.New(`"charged" is below 0`)
	case len(v.Ref) > mostRef || strings.ContainsFunc(v.Ref, func(c rune) bool { return c < ' ' || c > '~' }):
		return fmt.Errorf(`"ref" is not at most %d printable ASCII characters`, mostRef)
	}
	return nil
}

// refusal is what the sender is told.
func (v *Verdict) refusal() *protocol.Error {
	err := &protocol.Error{Reason: protocol.ReasonDeclined, Detail: hook.Words(v.Text)}
	if v.Reason == string(protocol.ReasonFunds) {
		err.Reason = protocol.ReasonFunds
	}
	return err
}
