package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"liveroom/internal/config"
)

// Exit codes. What an operator can mend in the configuration is told apart from what broke while running.
const (
	exitFailed = 1
	exitConfig = 2
)

// report writes err, one line per fault and without passwords, and returns the exit code.
func report(stderr io.Writer, err error) int {
	if err == nil {
		return 0
	}
	for line := range strings.Lines(config.Redact(err.Error())) {
		fmt.Fprintln(stderr, "liveserver: "+strings.TrimSpace(line))
	}
	var faults config.Faults
	var fault config.Fault
	if errors.As(err, &faults) || errors.As(err, &fault) {
		return exitConfig
	}
	return exitFailed
}
