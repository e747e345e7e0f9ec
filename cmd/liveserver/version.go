package main

import (
	"cmp"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"runtime/debug"
	"strings"

	"liveroom/internal/config"
	"liveroom/internal/node"
)

// version prints what was built and of which modules, as the Go tool wrote it into this binary, or into another one that is named:
// one for a platform that does not run here.
func version(args []string, stdout io.Writer) error {
	set := flag.NewFlagSet("version", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	asSBOM := set.Bool("sbom", false, "")
	if err := set.Parse(args); err != nil || set.NArg() > 1 {
		return config.Fault{Path: "version", Allowed: "-sbom, and the file of another liveserver", Received: strings.Join(args, " ")}
	}
	info, ok := debug.ReadBuildInfo()
	if set.NArg() == 1 {
		var err error
		if info, err = buildinfo.ReadFile(set.Arg(0)); err != nil {
			return config.Fault{Path: "version", Allowed: "the file of a liveserver", Received: err.Error()}
		}
	} else if !ok {
		return errors.New("this binary was built without word of its modules")
	}
	if *asSBOM {
		e := json.NewEncoder(stdout)
		e.SetIndent("", " ")
		return e.Encode(newSBOM(info))
	}
	fmt.Fprintln(stdout, node.Built(info))
	for _, m := range info.Deps {
		fmt.Fprintf(stdout, "  %s %s\n", m.Path, used(m).Version)
	}
	return nil
}

// used is the module that was compiled: the replacement where there is one.
func used(m *debug.Module) *debug.Module { return cmp.Or(m.Replace, m) }

// sbom is a bill of materials in the form of CycloneDX 1.6 (ECMA-424). It has no time and no serial number, so that the same binary
// gives the same text.
type sbom struct {
	Format      string `json:"bomFormat"`
	SpecVersion string `json:"specVersion"`
	Version     int    `json:"version"`
	Metadata    struct {
		Component sbomPart `json:"component"`
	} `json:"metadata"`
	Components []sbomPart `json:"components"`
}

type sbomPart struct {
	Type    string     `json:"type"`
	Ref     string     `json:"bom-ref"`
	Name    string     `json:"name"`
	Version string     `json:"version"`
	PURL    string     `json:"purl"`
	Hashes  []sbomHash `json:"hashes,omitempty"`
}

type sbomHash struct {
	Alg     string `json:"alg"`
	Content string `json:"content"`
}

func newSBOM(info *debug.BuildInfo) sbom {
	out := sbom{Format: "CycloneDX", SpecVersion: "1.6", Version: 1}
	out.Metadata.Component = partOf("application", cmp.Or(info.Main.Path, "liveroom"), info.Main.Version, "")
	out.Components = []sbomPart{partOf("library", "std", strings.TrimPrefix(info.GoVersion, "go"), "")}
	for _, m := range info.Deps {
		m = used(m)
		out.Components = append(out.Components, partOf("library", m.Path, m.Version, m.Sum))
	}
	return out
}

// partOf describes a module; sum is its line of go.sum, the SHA-256 of the module's files.
func partOf(kind, path, version, sum string) sbomPart {
	purl := "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B")
	part := sbomPart{Type: kind, Ref: purl, Name: path, Version: version, PURL: purl}
	if raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(sum, "h1:")); err == nil && len(raw) > 0 {
		part.Hashes = []sbomHash{{"SHA-256", hex.EncodeToString(raw)}}
	}
	return part
}
