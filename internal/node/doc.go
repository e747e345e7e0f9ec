// Package node is one running server: it makes every part, hands each the narrow interface it asks for, and takes them down
// again.
//
// The one idea: this package wires and owns life and death. What the parts say to each other goes through adapters that
// translate and decide nothing. Whoever makes a part adds its closer to the one list (closers.go), by which a node ends that
// ran, that failed to start, and that is told to hurry.
//
// Concurrency: a [Node] owns every goroutine it starts; [Node.Run] returns after the last one ended. All fields but the
// answers kept in it are fixed once [Start] has returned.
//
// Files: node.go (the parts, in the order they are made), closers.go (the end), ports.go and doors.go (listeners, servers, what
// comes in by them), certificate.go, hello.go (who a socket is of), tokens.go (signing, verifying, revoking), nodes.go, people.go and
// inside.go (the fabric between nodes), questions.go (what nodes ask each other), adapters.go and journal.go (rooms, API and limits to the fabric),
// quotas.go (limits over nodes), rulesource.go (where limits come from), changes.go (what is said to a change of them, before and
// after), observers.go (who looks on at the gate), hooks.go (where the platform is asked), gifts.go (who pays for gifts), webhooks.go (what is delivered), erase.go (what is forgotten), readiness.go,
// memory.go, tracing.go, datadir.go (its form), backup.go, doctor.go (what a node needs, examined).
package node
