// Package webhook delivers the journal to a platform's endpoints: in order, at least once, from where it was.
//
// The one idea: a webhook is a consumer of the journal ([journal.Consumer]) that a node reads for, and its record is lease and place in one.
// A [Courier] writes it each second, whether there was something to deliver or not; a node that has seen the same revision for some seconds
// takes the record over. Each write says which revision it knew, so a node that was paused meanwhile moves nothing.
//
//	journal ──▶ Courier, on the node that holds the record ──▶ POST, signed, a batch at a time
//	   ▲            │ taken: the place moves on, on disk
//	   │            │ no answer, 429, 5xx …: the line waits, with longer and longer pauses; it costs nothing but the journal's disk
//	   └────────────┤ 400, 413, 422, or named in the answer: a dead letter, on disk before the place moves on
//	                └ alone, eight times, for ten minutes, and pings are answered: a dead letter too
//
// There is one call at a time, so what is delivered is in the journal's order, and a batch that fails is tried entry by entry. What comes
// twice, as after a node was killed between answer and write, has the same ids.
//
// Concurrency: Run is called once; all else from any goroutine. The line's state belongs to Run's goroutine, which waits for the call that it starts.
//
// What it does not do: it signs nothing, keeps nothing itself, and knows neither NATS nor rooms.
//
// Files: courier.go (who delivers), line.go (what is delivered, and what an answer means), letter.go (what was not taken), trial.go
// (a sample for a platform that goes live), metrics.go.
package webhook
