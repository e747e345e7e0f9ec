//go:build nonats

package node

const natsInside = false
