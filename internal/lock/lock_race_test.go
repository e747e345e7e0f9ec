//go:build race

package lock

import (
	"strings"
	"sync"
	"testing"
)

type (
	early struct{}
	late  struct{}
)

func (early) at() int { return 1 }
func (late) at() int  { return 2 }

func takesEarly(m *Mutex[early]) { m.Lock(); defer m.Unlock() }
func takesLate(m *Mutex[late])   { m.Lock(); defer m.Unlock() }

// refused returns what f panics with.
func refused(f func()) (said string) {
	defer func() {
		if r := recover(); r != nil {
			said = r.(string)
		}
	}()
	f()
	return ""
}

func TestOnlyTheOrderIsAllowed(t *testing.T) {
	var a, a2 Mutex[early]
	var b Mutex[late]
	inOrder := func() {
		a.Lock()
		defer a.Unlock()
		takesLate(&b)
	}
	if said := refused(inOrder); said != "" {
		t.Fatalf("the order itself is refused: %s", said)
	}
	b.Lock()
	said := refused(func() { takesEarly(&a) })
	b.Unlock()
	for _, want := range []string{"early is taken while", "late is held", "lock.TestOnlyTheOrderIsAllowed"} {
		if !strings.Contains(said, want) {
			t.Errorf("no %q in %q", want, said)
		}
	}
	a.Lock()
	if refused(func() { takesEarly(&a2) }) == "" {
		t.Error("two of one place pass")
	}
	a.Unlock()
	a.LockAt(1)
	if refused(func() { a2.LockAt(0) }) == "" || refused(func() { a2.LockAt(2); a2.Unlock() }) != "" {
		t.Error("several of one place are to be taken in ascending order, and only so")
	}
	a.Unlock()
	if refused(inOrder) != "" {
		t.Error("something is still held")
	}
}

func TestGoroutinesHoldTheirOwn(t *testing.T) {
	var a Mutex[early]
	var b Mutex[late]
	b.Lock()
	defer b.Unlock()
	var wg sync.WaitGroup
	wg.Go(func() {
		if said := refused(func() { takesEarly(&a) }); said != "" {
			t.Errorf("another goroutine's lock counts: %s", said)
		}
	})
	wg.Wait()
	if !a.TryLock() {
		t.Error("a free lock is not taken")
	}
	a.Unlock()
	if refused(a.Unlock) == "" {
		t.Error("a lock that nobody holds is given back")
	}
}
