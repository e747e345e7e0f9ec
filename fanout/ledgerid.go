package fanout

import (
	"strconv"

	"github.com/nats-io/nats.go/jetstream"
)

// ledgerKey names the ledger in its stream's metadata, once it has lost gifts; until then the instant of its making does.
const ledgerKey = "liveroom.ledger"

// ledgerName is at most 22 of 0-9 a-z.
func ledgerName(info *jetstream.StreamInfo) string {
	if name := info.Config.Metadata[ledgerKey]; name != "" {
		return name
	}
	return strconv.FormatInt(info.Created.UnixNano(), 36)
}

// knowLedger keeps the ledger's name; another node may have given it a new one.
func (f *Fabric) knowLedger(info *jetstream.StreamInfo) {
	if name := ledgerName(info); name != f.LedgerID() {
		f.ledgerID.Store(&name)
	}
}
