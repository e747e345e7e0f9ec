//go:build !linux

package conn

func limitUnsent(int, int) {}
