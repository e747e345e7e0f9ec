package node

import "liveroom/internal/config"

// deflates reports whether clients may negotiate permessage-deflate.
func (n *Node) deflates() bool { return n.cfg.Compression != config.CompressionOff }

// deflateFrom is how many viewers must take deflated frames for a room to make them and to gather longer for them; 0 leaves
// it to the room what pays.
func (n *Node) deflateFrom() int {
	if n.cfg.Compression == config.CompressionOn {
		return 1
	}
	return 0
}
