package lock

// place is where a lock stands in the order: a lower one is taken first.
type place interface{ at() int }

// The order of locks, first to last. Each is the mutex of the type that it is called after. Those of one number are never held
// together.
type (
	Book      struct{} // internal/rulebook: what is in force, and its history
	Gate      struct{} // limit: changes of the rules in force
	Hub       struct{} // room: rooms and users of the node
	User      struct{} // room: places and answers of a user
	Room      struct{} // room: the tick, the audience, history
	Turnstile struct{} // room: who waits for its turn
	Life      struct{} // room: how many goroutines a hub has
	Table     struct{} // limit: subjects by key
	Subject   struct{} // limit: buckets; several in one decision, in the order of their scopes
	Cluster   struct{} // limit: what is shared of all subjects
	Slot      struct{} // limit: a slot of a concurrency rule over nodes
	Lane      struct{} // limit: what waits for a shard of the store
	Shard     struct{} // internal/preview: what was observed lately
	Recorder  struct{} // internal/preview: the names that shards share
	Session   struct{} // conn: a socket, held over its own non-blocking write(2)
	Readers   struct{} // conn: who waits to be read
	Fabric    struct{} // fanout: subscriptions and what else a node has of the bus
	Leaf      struct{} // any other: nothing is taken while it is held
)

func (Book) at() int      { return 1 }
func (Gate) at() int      { return 2 }
func (Hub) at() int       { return 3 }
func (User) at() int      { return 4 }
func (Room) at() int      { return 5 }
func (Turnstile) at() int { return 6 }
func (Life) at() int      { return 7 }
func (Table) at() int     { return 8 }
func (Subject) at() int   { return 9 }
func (Cluster) at() int   { return 10 }
func (Slot) at() int      { return 11 }
func (Lane) at() int      { return 12 }
func (Shard) at() int     { return 13 }
func (Recorder) at() int  { return 14 }
func (Session) at() int   { return 15 }
func (Readers) at() int   { return 16 }
func (Fabric) at() int    { return 17 }
func (Leaf) at() int      { return 18 }
