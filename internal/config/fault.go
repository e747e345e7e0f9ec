package config

import (
	"fmt"
	"regexp"
	"sort"
	"strings"
)

// Fault is one thing wrong with a configuration.
type Fault struct {
	Path     string // the key, as in the file
	Source   string // where the value was written: a file, a flag or a variable; "" when it is the default
	Allowed  string
	Received string
	Sentence string // says it all instead of the others; "" for none
}

// Error is one line: the path, what is allowed, what was received and where. Passwords in URLs are not shown.
func (f Fault) Error() string {
	if f.Sentence != "" {
		return Redact(f.Sentence)
	}
	s := f.Path + ": allowed is " + f.Allowed
	if f.Received != "" {
		s += "; received " + f.Received
	}
	if f.Source != "" {
		s += " (" + f.Source + ")"
	}
	return Redact(s)
}

// userInfo matches what stands before the host of a URL, also where its password should have been escaped and was not.
var userInfo = regexp.MustCompile(`://[^\s"]*@`)

// Redact hides the users and passwords of all URLs in a text that people will read.
func Redact(s string) string { return userInfo.ReplaceAllString(s, "://…@") }

// Faults is every fault of one configuration, in the order of their paths. It is an error when it is not empty.
type Faults []Fault

// Error is one line per fault.
func (fs Faults) Error() string {
	lines := make([]string, len(fs))
	for i, f := range fs {
		lines[i] = f.Error()
	}
	return strings.Join(lines, "\n")
}

// err returns fs as an error, nil when there is no fault.
func (fs Faults) err() error {
	if len(fs) == 0 {
		return nil
	}
	sort.SliceStable(fs, func(i, j int) bool { return fs[i].Path < fs[j].Path })
	return fs
}

// quote shows a received value on one line, cut where it would flood the terminal.
func quote(v any) string {
	const most = 80
	s := fmt.Sprintf("%q", fmt.Sprint(v))
	if len(s) > most {
		s = s[:most] + `…"`
	}
	return s
}
