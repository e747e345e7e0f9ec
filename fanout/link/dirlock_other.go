//go:build !unix

package link

import "os"

// lockFile opens the file; these systems have no advisory lock that ends with the process.
func lockFile(path string) (*os.File, error) { return os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) }
