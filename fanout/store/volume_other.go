//go:build !linux && !darwin

package store

// VolumeUsed can't be told here.
func VolumeUsed(string) (used float64, ok bool) { return 0, false }
