package node

import (
	"fmt"
	"runtime/debug"
)

// Version says what was built, from what the Go tool recorded in the binary.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "liveserver (unknown build)"
	}
	revision, modified := "", ""
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			revision = " " + s.Value[:min(12, len(s.Value))]
		case "vcs.modified":
			if s.Value == "true" {
				modified = " with local changes"
			}
		}
	}
	return fmt.Sprintf("liveserver %s%s%s %s", info.Main.Version, revision, modified, info.GoVersion)
}
