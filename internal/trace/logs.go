package trace

import (
	"context"
	"log/slog"

	otel "go.opentelemetry.io/otel/trace"
)

// Logs adds to the lines that belong to a trace its id and the span's.
func Logs(h slog.Handler) slog.Handler { return logs{h} }

type logs struct{ slog.Handler }

// Handle implements [slog.Handler].
func (l logs) Handle(ctx context.Context, r slog.Record) error {
	if id := otel.SpanContextFromContext(ctx); id.IsValid() {
		r.AddAttrs(slog.String("trace_id", id.TraceID().String()), slog.String("span_id", id.SpanID().String()))
	}
	return l.Handler.Handle(ctx, r)
}

// WithAttrs implements [slog.Handler].
func (l logs) WithAttrs(attrs []slog.Attr) slog.Handler { return logs{l.Handler.WithAttrs(attrs)} }

// WithGroup implements [slog.Handler].
func (l logs) WithGroup(name string) slog.Handler { return logs{l.Handler.WithGroup(name)} }
