package node

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"liveroom/internal/config"
	"liveroom/internal/trace"
)

// lastSpans is how long the end of a node may take for the spans that wait.
const lastSpans = 2 * time.Second

// openTracing makes what operations are seen by. It ends after all that has any.
func (n *Node) openTracing(reg prometheus.Registerer) (err error) {
	headers := map[string]string{}
	for _, h := range n.cfg.Tracing.Headers {
		name, value, _ := config.Header(h) // config.Validate has looked
		headers[name] = value
	}
	of := n.cfg.Tracing
	n.trace, err = trace.New(trace.Config{
		Endpoint: of.Endpoint, Headers: headers, Sample: of.Sample, Service: of.Service, Node: n.cfg.NodeID, Version: Version(),
		Slow: n.cfg.Log.Slow, Log: n.log, Metrics: reg,
	})
	if err != nil {
		return config.Fault{Path: "tracing.endpoint", Allowed: err.Error(), Received: of.Endpoint}
	}
	n.closers.add("send the last spans", lastSpans, n.trace.Close)
	n.runs("sending spans", n.trace.Run)
	return nil
}
