// Package question lets nodes ask each other, by verbs, with payloads of any size up to 64 MiB.
//
// The one idea: a question is a NATS request with the asker's patience in it; what does not fit into one message is offered and
// fetched piece by piece, at the pace of who wants it. nats.go's micro would do the request alone: the queue with its bound, the
// workers, the patience, the parcels and asking oneself without NATS stay, and each node would hear nine subjects more.
//
// All methods may be called from any goroutine. An [Answerer] runs on one of eight goroutines of its verb.
//
// Files: ask.go, who asks; answer.go, who answers; parcel.go, what does not fit into one message.
package question
