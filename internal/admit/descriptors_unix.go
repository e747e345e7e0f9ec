//go:build unix

package admit

import (
	"math"
	"os"
	"syscall"
)

// descriptorLimit is how many descriptors this process may have; 0: no limit that matters. Go has raised the soft limit to the
// hard one before main began (package os, since Go 1.19).
func descriptorLimit() int {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil || uint64(l.Cur) > math.MaxInt32 {
		return 0
	}
	return int(l.Cur)
}

// openDescriptors is how many it has now.
func openDescriptors() int {
	open, err := os.ReadDir("/dev/fd")
	if err != nil {
		return unknownDescriptors
	}
	return len(open)
}
