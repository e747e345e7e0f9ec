package main

import (
	_ "embed"
	"strings"
)

// corpusText holds lines as viewers type them, Chinese and English, written for this project: text that repeats like
// real chat does, so that sizes on the wire are those of a real room. A line holds nothing that JSON would escape.
//
//go:embed corpus.txt
var corpusText string

// corpus returns the lines.
func corpus() []string {
	return strings.Split(strings.TrimSpace(corpusText), "\n")
}
