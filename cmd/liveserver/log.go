package main

import (
	"io"
	"log/slog"

	"liveroom/internal/config"
)

// newLogger writes what the configuration asks for to w.
func newLogger(w io.Writer, c config.Log, node string) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.Level)); err != nil {
		level = slog.LevelInfo // config.Validate allows only names that slog knows
	}
	opts := &slog.HandlerOptions{Level: level, ReplaceAttr: withoutPasswords}
	var h slog.Handler = slog.NewJSONHandler(w, opts)
	if c.Format == "text" {
		h = slog.NewTextHandler(w, opts)
	}
	return slog.New(h).With("node", node)
}

// withoutPasswords hides those of URLs, which errors of libraries repeat.
func withoutPasswords(_ []string, a slog.Attr) slog.Attr {
	switch v := a.Value.Any().(type) {
	case string:
		a.Value = slog.StringValue(config.Redact(v))
	case error:
		a.Value = slog.StringValue(config.Redact(v.Error()))
	}
	return a
}
