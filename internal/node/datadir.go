package node

import (
	"os"

	"liveroom/internal/config"
)

// prepareDataDir makes the directory when it is missing and makes sure that files can be written there.
func prepareDataDir(dir string) error {
	err := os.MkdirAll(dir, 0o750)
	if err == nil {
		var probe *os.File
		if probe, err = os.CreateTemp(dir, ".probe-*"); err == nil {
			probe.Close()
			err = os.Remove(probe.Name())
		}
	}
	if err != nil {
		return config.Fault{Path: "data_dir", Allowed: "a directory that this process can write to", Received: err.Error()}
	}
	return nil
}
