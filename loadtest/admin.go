package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"liveroom/loadtest/internal/process"
	"liveroom/loadtest/internal/report"
)

func environment(ctx context.Context, s *sampler) report.Environment {
	e := report.Environment{Go: runtime.Version(), OS: runtime.GOOS + "/" + runtime.GOARCH, Processors: runtime.NumCPU()}
	e.Kernel, e.CPU, e.Load = process.Machine()
	for _, admin := range s.admins() {
		if v := s.client.version(ctx, admin); v != "" {
			e.Server = append(e.Server, v)
		}
	}
	return e
}

// metricsClient reads a node's admin listener.
type metricsClient struct {
	http  *http.Client
	token string // of an admin; "" for none
}

func newMetricsClient(token string) *metricsClient {
	return &metricsClient{token: token, http: &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}}
}

// scrape returns the metrics of one node: those with labels under name{labels}, and summed up under the bare name.
func (c *metricsClient) scrape(ctx context.Context, admin string) (map[string]float64, error) {
	body, err := c.do(ctx, http.MethodGet, admin+"/metrics")
	if err != nil {
		return nil, err
	}
	defer body.Close()
	return parseMetrics(body)
}

// parseMetrics reads the text format of Prometheus.
func parseMetrics(r io.Reader) (map[string]float64, error) {
	p := expfmt.NewTextParser(model.UTF8Validation)
	families, err := p.TextToMetricFamilies(r)
	if err != nil {
		return nil, err
	}
	samples, err := expfmt.ExtractSamples(&expfmt.DecodeOptions{}, slices.Collect(maps.Values(families))...)
	out := map[string]float64{}
	for _, s := range samples {
		if len(s.Metric) > 1 {
			out[string(s.Metric[model.MetricNameLabel])] += float64(s.Value)
		}
		out[s.Metric.String()] = float64(s.Value)
	}
	return out, err
}

// free makes a node collect its garbage and return free memory to the system (POST /debug/free), or, where it does not
// know that, collect alone (net/http/pprof, heap?gc=1).
func (c *metricsClient) free(ctx context.Context, admin string) error {
	body, err := c.do(ctx, http.MethodPost, admin+"/debug/free")
	if err != nil {
		body, err = c.do(ctx, http.MethodGet, admin+"/debug/pprof/heap?gc=1")
	}
	if err != nil {
		return err
	}
	defer body.Close()
	_, err = io.Copy(io.Discard, body)
	return err
}

// version is what a node says it is, "" when it says nothing.
func (c *metricsClient) version(ctx context.Context, admin string) string {
	body, err := c.do(ctx, http.MethodGet, admin+"/readyz")
	if err != nil {
		return ""
	}
	defer body.Close()
	var v struct{ Node, Version string }
	if json.NewDecoder(io.LimitReader(body, 1<<16)).Decode(&v) != nil {
		return ""
	}
	return strings.TrimSpace(v.Node + " " + v.Version)
}

func (c *metricsClient) do(ctx context.Context, method, url string) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return nil, err
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		return nil, fmt.Errorf("%s: status %d", url, resp.StatusCode)
	}
	return resp.Body, nil
}
