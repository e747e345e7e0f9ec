//go:build !race

package lock

import "sync"

// Mutex is a sync.Mutex with a place in the order of locks. The zero value is unlocked.
type Mutex[P any] struct{ sync.Mutex }

// LockAt is Lock for one of several of the same place that are held together, in ascending order of i, which is 0 to 15.
func (m *Mutex[P]) LockAt(int) { m.Lock() }
