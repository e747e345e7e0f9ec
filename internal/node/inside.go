//go:build !nonats

package node

// natsInside tells whether this build has a NATS server inside.
const natsInside = true
