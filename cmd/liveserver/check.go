package main

import (
	"fmt"
	"io"
	"log/slog"

	"liveroom/internal/config"
)

// check reads everything a start would read and starts nothing.
func check(args []string, stdout io.Writer, environ []string) error {
	cfg, err := config.Load(args, environ, nil)
	if err != nil {
		return err
	}
	rules, err := loadRules(cfg.Limits)
	if err != nil {
		return err
	}
	if _, err := loadTLS(cfg.TLS, slog.New(slog.DiscardHandler)); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "The configuration is valid: %d gifts, %d limit rules.\n", len(cfg.Gifts), len(rules.Rules))
	return err
}
