package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"liveroom/internal/config"
)

// dataFormat is the form of the data directory that this version writes. It grows when an older version would misread what is
// written: streams and files that are only added leave it as it is, since an older version passes them over.
const dataFormat = 1

// versionFile says in the data directory which form it has.
const versionFile = "version.json"

// dataVersion is the content of that file.
type dataVersion struct {
	Format  int    `json:"format"`
	Version string `json:"version"` // that brought it into this form, or used it first
}

// prepareDataDir makes the directory when it is missing, makes sure that files can be written there and that this version reads what
// lies there, and notes its own.
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
	have, err := readVersion(dir)
	if err != nil || have.Format == dataFormat {
		return err
	}
	return writeVersion(dir)
}

// readVersion returns what the directory says of itself; zero for one that is new, or of a version that wrote no such file. A form
// that only a later version reads is an error.
func readVersion(dir string) (have dataVersion, err error) {
	name := filepath.Join(dir, versionFile)
	raw, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return have, nil
	}
	if err == nil {
		err = json.Unmarshal(raw, &have)
	}
	switch {
	case err != nil:
		return have, config.Fault{Path: "data_dir", Allowed: "one whose " + versionFile + " can be read", Received: name + ": " + err.Error()}
	case have.Format < 1:
		return have, config.Fault{Path: "data_dir", Allowed: "one whose " + versionFile + " names a format from 1 on", Received: fmt.Sprintf("%s: format %d", name, have.Format)}
	case have.Format > dataFormat:
		return have, config.Fault{Path: "data_dir", Sentence: fmt.Sprintf(
			"%s has written %s in format %d, and %s reads up to %d: start that version or a later one, or restore a backup of before the upgrade into an empty directory",
			have.Version, dir, have.Format, Version(), dataFormat)}
	}
	return have, nil
}

// writeVersion puts the file there whole, or not at all.
func writeVersion(dir string) error {
	raw, err := json.Marshal(dataVersion{dataFormat, Version()})
	tmp := filepath.Join(dir, "."+versionFile)
	if err == nil {
		err = os.WriteFile(tmp, append(raw, '\n'), 0o640)
	}
	if err == nil {
		err = os.Rename(tmp, filepath.Join(dir, versionFile))
	}
	if err != nil {
		return config.Fault{Path: "data_dir", Allowed: "a directory where " + versionFile + " can be written", Received: err.Error()}
	}
	return nil
}
