package node

import "liveroom/internal/config"

// tellAuthority says at start what nobody decided, or what somebody may have left switched on.
func (n *Node) tellAuthority() {
	switch by := n.cfg.Gifts; {
	case by.Authority == config.GiftsByBackend && !by.Chosen():
		n.log.Warn("gifts that viewers' sockets send are refused, unlike in earlier versions: they come from your back end by the HTTP API. Say gifts.authority: backend to keep it so, hook to be asked about each, open to charge nothing",
			"gifts.authority", by.Authority)
	case by.Authority == config.GiftsOpen:
		n.log.Warn("gifts are open to everybody and nothing is charged: for a demonstration", "gifts.authority", by.Authority)
	}
}
