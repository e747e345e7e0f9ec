//go:build race

package lock

// place is where a lock stands in the order: a lower one is taken first.
type place interface{ at() int }

func (Book) at() int      { return 1 }
func (Gate) at() int      { return 2 }
func (Hub) at() int       { return 3 }
func (User) at() int      { return 4 }
func (Room) at() int      { return 5 }
func (Audience) at() int  { return 6 }
func (Turnstile) at() int { return 7 }
func (Life) at() int      { return 8 }
func (Table) at() int     { return 9 }
func (Subject) at() int   { return 10 }
func (Cluster) at() int   { return 11 }
func (Lane) at() int      { return 12 }
func (Shard) at() int     { return 13 }
func (Recorder) at() int  { return 14 }
func (Session) at() int   { return 15 }
func (Readers) at() int   { return 16 }
func (Leaf) at() int      { return 17 }
