package room

import (
	"time"

	"liveroom/protocol"
)

// catalogue is what can be given. Immutable.
type catalogue struct {
	protocol.Catalogue
	byID map[string]protocol.CatalogueGift
}

func newCatalogue(c protocol.Catalogue) *catalogue {
	if c.Gifts == nil {
		c.Gifts = []protocol.CatalogueGift{} // as JSON a list
	}
	all := &catalogue{c, make(map[string]protocol.CatalogueGift, len(c.Gifts))}
	for _, g := range c.Gifts {
		all.byID[g.ID] = g
	}
	return all
}

func (c *catalogue) find(id string) (protocol.CatalogueGift, *protocol.Error) {
	g, ok := c.byID[id]
	if !ok {
		return g, &protocol.Error{Reason: protocol.ReasonNotFound, Detail: "gift: not in the catalogue"}
	}
	return g, nil
}

// Offer puts a catalogue in force, which was checked: what is given from now on is priced by it, what was admitted keeps its price. All
// viewers here are told, as of an event for all rooms. It does not wait for that.
func (h *Hub) Offer(c protocol.Catalogue) {
	h.catalogue.Store(newCatalogue(c))
	select {
	case h.offered <- struct{}{}:
	default: // whoever is about to tell tells of this one
	}
}

// tellCatalogue tells all rooms what can be given now; false when the hub has ended. Who enters meanwhile is told by the welcome.
func (h *Hub) tellCatalogue() bool {
	event := protocol.AppendGifts(nil, h.catalogue.Load().Catalogue)
	return h.inTurn(func(r *Room) { r.audience.Control(event) })
}

// inTurn calls tell for each room, in slices of a tick each; false when the hub has ended.
func (h *Hub) inTurn(tell func(*Room)) bool {
	rooms, all := h.opened(), 0
	for _, r := range rooms {
		all += r.audience.Here()
	}
	slice, told := min(castSlice, all/castTicks+1), 0
	for _, r := range rooms {
		n := r.audience.Here()
		if told > 0 && told+n > slice {
			select {
			case <-time.After(h.stretched(h.cfg.Audience.Tick)):
			case <-h.done:
				return false
			}
			told = 0
		}
		tell(r)
		told += n
	}
	return true
}
