package main

import (
	"fmt"
	"io"

	"liveroom/internal/config"
	"liveroom/internal/node"
)

// check reads everything a start would read and starts nothing.
func check(args []string, stdout io.Writer, environ []string) error {
	cfg, err := config.Load(args, environ, nil)
	if err != nil {
		return err
	}
	rules, err := node.Check(cfg)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "The configuration is valid: %d gifts, %d limit rules.\n", len(cfg.Gifts), rules)
	return err
}
