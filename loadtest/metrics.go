package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// metricsClient reads a node's admin listener.
type metricsClient struct {
	http  *http.Client
	token string // of an admin; "" for none
}

func newMetricsClient(token string) *metricsClient {
	return &metricsClient{token: token, http: &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}}
}

// scrape returns the metrics of one node: those with labels under name{labels} as written, and summed up under the bare
// name.
func (c *metricsClient) scrape(ctx context.Context, admin string) (map[string]float64, error) {
	body, err := c.get(ctx, admin+"/metrics")
	if err != nil {
		return nil, err
	}
	defer body.Close()
	return parseMetrics(body)
}

// parseMetrics reads the text format of Prometheus as far as numbers go.
func parseMetrics(r io.Reader) (map[string]float64, error) {
	out := map[string]float64{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if line == "" || line[0] == '#' {
			continue
		}
		end := strings.LastIndexByte(line, '}') + 1 // a label's value may hold spaces
		i := strings.IndexByte(line[end:], ' ')
		if i < 0 {
			continue
		}
		name := line[:end+i]
		field, _, _ := strings.Cut(strings.TrimSpace(line[end+i:]), " ") // a time stamp may follow
		v, err := strconv.ParseFloat(field, 64)
		if err != nil {
			continue
		}
		if bare, _, labelled := strings.Cut(name, "{"); labelled {
			out[bare] += v
		}
		out[name] = v
	}
	return out, lines.Err()
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
	body, err := c.get(ctx, admin+"/readyz")
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

func (c *metricsClient) get(ctx context.Context, url string) (io.ReadCloser, error) {
	return c.do(ctx, http.MethodGet, url)
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
