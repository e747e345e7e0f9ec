package trace

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

const (
	// queued bounds the spans that wait, some 2 KiB each.
	queued = 4096
	// batchMost is how many go together, and batchEvery how long they gather.
	batchMost  = 512
	batchEvery = time.Second
	// exportTimeout bounds one delivery, and failedRest is the rest after one that failed.
	exportTimeout = 5 * time.Second
	failedRest    = time.Second
)

// What becomes of spans.
const (
	spansSent    = "sent"
	spansFailed  = "failed"  // the receiver did not take them
	spansDropped = "dropped" // the queue was full, or the node ended
)

func newExportMetrics(r prometheus.Registerer) map[string]prometheus.Counter {
	all := promauto.With(r).NewCounterVec(prometheus.CounterOpts{Name: "liveroom_trace_spans_total",
		Help: "Spans by what became of them: sent, failed (the receiver did not take them), dropped (the queue was full)."}, []string{"result"})
	out := map[string]prometheus.Counter{}
	for _, result := range []string{spansSent, spansFailed, spansDropped} {
		out[result] = all.WithLabelValues(result)
	}
	return out
}

// export is the queue before the receiver. The library's own has no count of what it drops.
type export struct {
	// Fixed after construction.
	spans chan sdk.ReadOnlySpan
	to    sdk.SpanExporter
	count map[string]prometheus.Counter
	log   *slog.Logger

	failing bool // owned by who sends: Run, then Close
}

var _ sdk.SpanProcessor = (*export)(nil)

func newExport(to sdk.SpanExporter, count map[string]prometheus.Counter, log *slog.Logger) *export {
	return &export{spans: make(chan sdk.ReadOnlySpan, queued), to: to, count: count, log: log}
}

// OnStart implements [sdk.SpanProcessor].
func (*export) OnStart(context.Context, sdk.ReadWriteSpan) {}

// OnEnd implements [sdk.SpanProcessor]: it never waits.
func (e *export) OnEnd(s sdk.ReadOnlySpan) {
	if !s.SpanContext().IsSampled() {
		return
	}
	select {
	case e.spans <- s:
	default:
		e.count[spansDropped].Inc()
	}
}

// Shutdown implements [sdk.SpanProcessor]; the tracer ends by Close.
func (*export) Shutdown(context.Context) error { return nil }

// ForceFlush implements [sdk.SpanProcessor].
func (*export) ForceFlush(context.Context) error { return nil }

// run sends until ctx ends.
func (e *export) run(ctx context.Context) {
	tick := time.NewTicker(batchEvery)
	defer tick.Stop()
	var batch []sdk.ReadOnlySpan
	for {
		due := false
		select {
		case s := <-e.spans:
			batch = append(batch, s)
			due = len(batch) == batchMost
		case <-tick.C:
			due = len(batch) > 0
		case <-ctx.Done():
			e.count[spansDropped].Add(float64(e.putBack(batch)))
			return
		}
		if !due {
			continue
		}
		if !e.send(ctx, batch) {
			select {
			case <-time.After(failedRest):
			case <-ctx.Done():
			}
		}
		batch = nil // the receiver may still read it
	}
}

// putBack leaves what was taken and not sent to Close, and returns how much of it has no place any more.
func (e *export) putBack(batch []sdk.ReadOnlySpan) (lost int) {
	for i, s := range batch {
		select {
		case e.spans <- s:
		default:
			return len(batch) - i
		}
	}
	return 0
}

// flush sends what waits, one batch after the other, until one is not taken or ctx ends.
func (e *export) flush(ctx context.Context) {
	for n := len(e.spans); n > 0; n = len(e.spans) {
		batch := make([]sdk.ReadOnlySpan, 0, min(n, batchMost))
		for range cap(batch) {
			batch = append(batch, <-e.spans)
		}
		if !e.send(ctx, batch) {
			e.count[spansDropped].Add(float64(len(e.spans)))
			return
		}
	}
}

// send delivers one batch. A receiver that fails is told of once, and that it is back.
func (e *export) send(ctx context.Context, batch []sdk.ReadOnlySpan) bool {
	ctx, cancel := context.WithTimeout(ctx, exportTimeout)
	defer cancel()
	err := e.to.ExportSpans(ctx, batch)
	result := spansSent
	if err != nil {
		result = spansFailed
	}
	e.count[result].Add(float64(len(batch)))
	if failing := err != nil; failing != e.failing {
		e.failing = failing
		if failing {
			e.log.Warn("the receiver of traces takes none", "err", err)
		} else {
			e.log.Info("the receiver of traces is back")
		}
	}
	return err == nil
}

// tracesPath is where receivers take traces (OTLP 1.x, "OTLP/HTTP Request").
const tracesPath = "/v1/traces"

// receiver speaks OTLP over HTTP. It is not the library's own client, which brings gRPC along, and reads an environment that is not
// the server's.
type receiver struct {
	url     string
	headers map[string]string
	client  *http.Client
}

var _ otlptrace.Client = (*receiver)(nil)

func newReceiver(endpoint string, headers map[string]string) (*receiver, error) {
	u, err := url.Parse(endpoint)
	switch {
	case err != nil:
		return nil, badEndpoint(err.(*url.Error).Err) // without the address
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "", u.User != nil, u.RawQuery != "", u.Fragment != "":
		return nil, errEndpoint
	case u.Path == "", u.Path == "/":
		u.Path = tracesPath
	}
	return &receiver{url: u.String(), headers: headers, client: &http.Client{
		Transport:     &http.Transport{MaxIdleConns: 1, IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Start implements [otlptrace.Client].
func (*receiver) Start(context.Context) error { return nil }

// Stop implements [otlptrace.Client].
func (r *receiver) Stop(context.Context) error { r.client.CloseIdleConnections(); return nil }

// UploadTraces implements [otlptrace.Client]. TracesData is on the wire what a request of the collector's service is, whose package
// brings gRPC.
func (r *receiver) UploadTraces(ctx context.Context, spans []*otlp.ResourceSpans) error {
	raw, err := proto.Marshal(&otlp.TracesData{ResourceSpans: spans})
	if err != nil {
		return err
	}
	var body bytes.Buffer
	zip := gzip.NewWriter(&body)
	_, _ = zip.Write(raw) // a buffer takes everything
	_ = zip.Close()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url, &body)
	if err != nil {
		return err
	}
	for k, v := range r.headers {
		req.Header.Set(k, v)
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	req.Header.Set("Content-Encoding", "gzip")
	req.Header.Set("User-Agent", "liveroom")
	res, err := r.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 64<<10)) // so that the connection is kept
	if res.StatusCode/100 != 2 {
		return fmt.Errorf("HTTP status %d", res.StatusCode)
	}
	return nil
}
