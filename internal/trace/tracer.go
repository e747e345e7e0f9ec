package trace

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	otel "go.opentelemetry.io/otel/trace"
)

// Kind is what sort of operation one is.
type Kind int

// The kinds. Those of a store are parts of others: without one around them they are no spans.
const (
	API   Kind = iota // a call of the HTTP API
	Gift              // a gift's way into the ledger, paid for on the way where somebody is
	Hook              // a call of the platform
	Store             // a call of NATS JetStream
	Redis             // calls of a Redis server, in one pipeline
	Tick              // a flush of a room; it is no Op, see [Tracer.Took]
	kinds
)

// described says how kinds are told.
var described = [kinds]struct {
	name  string
	span  otel.SpanKind
	place attribute.Key // what an operation of the kind is of; also its key in the log
	part  bool          // of another; no span without one
}{
	API:   {"api", otel.SpanKindServer, "room", false},
	Gift:  {"gift", otel.SpanKindInternal, "room", false},
	Hook:  {"hook", otel.SpanKindClient, "hook", false},
	Store: {"store", otel.SpanKindClient, "store", true},
	Redis: {"redis", otel.SpanKindClient, "shard", false},
	Tick:  {"tick", otel.SpanKindInternal, "room", false},
}

// Config configures a [Tracer].
type Config struct {
	Endpoint string            // of the receiver, OTLP over HTTP, without a path the usual one; "": no spans are made
	Headers  map[string]string // sent along, such as a key
	Sample   float64           // share of the traces begun here that are sent, 0 to 1; those of callers go by their word
	Service  string            // the name that spans carry
	Node     string
	Version  string
	Slow     time.Duration // an operation that takes as long is told in the log; 0: none is
	Log      *slog.Logger
	Metrics  prometheus.Registerer // nil: counted for nobody
}

// Tracer begins operations.
type Tracer struct {
	// Fixed after construction.
	tracer otel.Tracer // nil: no spans
	export *export     // nil: no spans
	slow   *slow
}

// New returns a tracer. Nobody is asked for anything yet: a receiver may come up later.
func New(cfg Config) (*Tracer, error) {
	t := &Tracer{slow: newSlow(cfg)}
	sent := newExportMetrics(cfg.Metrics)
	if cfg.Endpoint == "" {
		return t, nil
	}
	to, err := newReceiver(cfg.Endpoint, cfg.Headers)
	if err != nil {
		return nil, err
	}
	t.export = newExport(otlptrace.NewUnstarted(to), sent, cfg.Log)
	t.tracer = sdk.NewTracerProvider(
		sdk.WithSampler(sdk.ParentBased(sdk.TraceIDRatioBased(cfg.Sample))),
		sdk.WithSpanProcessor(t.export),
		sdk.WithResource(resource.NewSchemaless(attribute.String("service.name", cfg.Service), attribute.String("service.instance.id", cfg.Node), attribute.String("service.version", cfg.Version))),
	).Tracer("liveroom")
	return t, nil
}

// Run sends spans until ctx ends.
func (t *Tracer) Run(ctx context.Context) {
	if t.export != nil {
		t.export.run(ctx)
	}
}

// Close sends what waits, until ctx ends; what is left then is dropped and counted. Run has returned.
func (t *Tracer) Close(ctx context.Context) error {
	if t.export != nil {
		t.export.flush(ctx)
	}
	return nil
}

// Op is an operation that has begun. The zero Op is none.
type Op struct {
	of          *Tracer
	span        otel.Span // nil: none
	kind        Kind
	what, place string
	began       time.Time
	waits       bool
}

// Begin begins an operation: what is done, of a closed list, and where, by the kind (a room, a stream). The context is for what is done
// within it. Off, it reads a clock at most.
func (t *Tracer) Begin(ctx context.Context, k Kind, what, place string) (context.Context, Op) {
	if t == nil || t.tracer == nil && !t.slow.on() {
		return ctx, Op{}
	}
	op := Op{of: t, kind: k, what: what, place: place, began: time.Now()}
	if t.tracer == nil || described[k].part && !otel.SpanContextFromContext(ctx).IsValid() {
		return ctx, op
	}
	name := what
	if k != API {
		name = described[k].name + " " + what
	}
	ctx, op.span = t.tracer.Start(ctx, name, otel.WithSpanKind(described[k].span), otel.WithTimestamp(op.began))
	if op.span.IsRecording() && place != "" {
		op.span.SetAttributes(attribute.String("liveroom."+string(described[k].place), place))
	}
	return ctx, op
}

// Result notes how the operation ended, by a word of a closed list.
func (o Op) Result(word string) {
	if o.span != nil && o.span.IsRecording() {
		o.span.SetAttributes(attribute.String("liveroom.result", word))
	}
}

// Answered notes a route and its answer's status; from 500 on the operation has failed.
func (o Op) Answered(method, route string, status int) {
	if o.span == nil || !o.span.IsRecording() {
		return
	}
	o.span.SetAttributes(attribute.String("http.request.method", method), attribute.String("http.route", route), attribute.Int("http.response.status_code", status))
	if status >= http.StatusInternalServerError {
		o.span.SetStatus(codes.Error, "")
	}
}

// Waits is for an operation that waits for something to come: its length says nothing.
func (o *Op) Waits() { o.waits = true }

// End ends the operation, which failed if err is not nil. What err says is not told.
func (o Op) End(err error) {
	if o.of == nil {
		return
	}
	took := time.Since(o.began)
	var id otel.SpanContext
	if o.span != nil {
		if err != nil {
			o.span.SetStatus(codes.Error, "")
		}
		o.span.End()
		id = o.span.SpanContext()
	}
	if !o.waits {
		o.of.slow.look(id, o.kind, o.what, o.place, took)
	}
}

// Took is for what is measured elsewhere and never a span.
func (t *Tracer) Took(k Kind, what, place string, took time.Duration) {
	if t != nil {
		t.slow.look(otel.SpanContext{}, k, what, place, took)
	}
}

// Accept has what is done under the context belong to the trace that the request names (W3C Trace Context, section 3.2); without a good
// traceparent to none.
func Accept(ctx context.Context, h http.Header) context.Context {
	return propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(h))
}

// Tell names the trace that the context belongs to in a request, if there is one.
func Tell(ctx context.Context, h http.Header) {
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(h))
}

// parentKey is traceparent's name as a map's key.
const parentKey = "traceparent"

// Mark is the trace that the context belongs to, to be kept with what is finished later, perhaps by another node; "" for none.
func Mark(ctx context.Context) string {
	var c propagation.MapCarrier
	if otel.SpanContextFromContext(ctx).IsValid() {
		c = propagation.MapCarrier{}
		propagation.TraceContext{}.Inject(ctx, c)
	}
	return c[parentKey]
}

// Resume is the context with the trace of a mark.
func Resume(ctx context.Context, mark string) context.Context {
	if mark == "" {
		return ctx
	}
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{parentKey: mark})
}

// CheckEndpoint returns what is wrong with the address of a receiver; nil: nothing.
func CheckEndpoint(endpoint string) error {
	_, err := newReceiver(endpoint, nil)
	return err
}

var errEndpoint = errors.New("want a URL that begins with http:// or https://, without user, query and fragment")

func badEndpoint(err error) error { return fmt.Errorf("%w: %w", errEndpoint, err) }
