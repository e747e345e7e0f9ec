package lock

// The order of locks, first to last. Each is the mutex of the type that it is called after. Those of one number are never held
// together.
type (
	Book      struct{} // internal/edition: which edition is in force
	Gate      struct{} // limit: changes of the rules in force
	Hub       struct{} // room: rooms and users of the node
	User      struct{} // room: places and answers of a user
	Room      struct{} // room: which settings hold, likes on their way
	Audience  struct{} // room/audience: members, the tick, history
	Turnstile struct{} // room: who waits for its turn
	Life      struct{} // room: how many goroutines a hub has
	Table     struct{} // limit: subjects by key
	Subject   struct{} // limit: buckets; several in one decision, in the order of their scopes
	Cluster   struct{} // limit/cluster: what is shared of all subjects
	Lane      struct{} // limit/cluster: what waits for a shard of the store
	Shard     struct{} // internal/preview: what was observed lately
	Recorder  struct{} // internal/preview: the names that shards share
	Session   struct{} // conn: a socket, held over its own non-blocking write(2)
	Readers   struct{} // conn: who waits to be read
	Leaf      struct{} // any other: nothing is taken while it is held
)
