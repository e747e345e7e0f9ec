//go:build linux || darwin

package store

import "golang.org/x/sys/unix"

// VolumeUsed is the part of a directory's volume that is not free to this process; false where that can't be told.
func VolumeUsed(dir string) (used float64, ok bool) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil || s.Blocks == 0 {
		return 0, false
	}
	return 1 - float64(s.Bavail)/float64(s.Blocks), true
}
