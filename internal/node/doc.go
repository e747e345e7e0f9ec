// Package node is one running server: it makes every part, hands each the narrow interface it asks for, and takes them down
// again.
//
// The one idea: this package wires and owns life and death. What the parts say to each other goes through adapters that
// translate and decide nothing.
//
// Concurrency: a [Node] owns every goroutine it starts; [Node.Close] returns after the last one ended.
package node
