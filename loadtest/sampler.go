package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// ServerSample is what the server's processes looked like at one instant, all nodes together.
type ServerSample struct {
	At         float64 `json:"at_seconds"` // since sampling began
	CPU        float64 `json:"cpu"`        // of one core, since the sample before
	Memory     float64 `json:"memory_bytes"`
	Goroutines float64 `json:"goroutines"`
	Sessions   float64 `json:"sessions"`
	Heap       float64 `json:"heap_bytes"`
	LoadCPU    float64 `json:"load_cpu"`  // of one core: this tool
	OtherCPU   float64 `json:"other_cpu"` // of one core: everything else on this machine

	redis RedisCalls
}

// sampler looks at the server once a second.
type sampler struct {
	// fixed after construction
	client *metricsClient
	redis  *redis.Client // nil: not asked
	began  time.Time

	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu      sync.Mutex
	watched []watched      // guarded by mu
	samples []ServerSample // guarded by mu
	last    usage          // guarded by mu
}

// watched is one node: where it is asked, and what it said last, also when it is gone.
type watched struct {
	admin string     // "" for none
	pid   int        // 0 for none
	cpu   float64    // processor time, seconds
	calls RedisCalls // to Redis
}

// usage is the processor time spent up to an instant, in seconds.
type usage struct {
	at           time.Time
	server, self float64
	machine      float64 // all processes; 0 where it can't be known
}

// newSampler watches nodes, and a Redis, unless that is nil; token is an admin's, "" for none.
func newSampler(admins []string, pids []int, r *redis.Client, token string) *sampler {
	s := &sampler{client: newMetricsClient(token), redis: r, began: time.Now()}
	for i := range max(len(admins), len(pids)) {
		var w watched
		if i < len(admins) {
			w.admin = admins[i]
		}
		if i < len(pids) {
			w.pid = pids[i]
		}
		s.watched = append(s.watched, w)
	}
	return s
}

// watch adds a node.
func (s *sampler) watch(admin string, pid int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watched = append(s.watched, watched{admin: admin, pid: pid})
}

// watchOnly watches one node instead of those before.
func (s *sampler) watchOnly(admin string, pid int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watched = []watched{{admin: admin, pid: pid}}
}

// nodes are those watched now.
func (s *sampler) nodes() []watched {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.watched)
}

// admins are where the nodes are asked.
func (s *sampler) admins() []string {
	var out []string
	for _, w := range s.nodes() {
		if w.admin != "" {
			out = append(out, w.admin)
		}
	}
	return out
}

// blind reports whether nothing is known of the server.
func (s *sampler) blind() bool { return len(s.nodes()) == 0 }

// start takes samples until stop. It fails when the server can't be looked at although it was said how.
func (s *sampler) start(ctx context.Context) error {
	if s.blind() {
		return nil
	}
	if _, err := s.read(ctx); err != nil {
		return err
	}
	ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	s.wg.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				soon, cancel := context.WithTimeout(ctx, time.Second) // one node that stands still must not hide the others
				_, _ = s.read(soon)                                   // one sample less; a server that is gone shows by its sockets
				cancel()
			case <-ctx.Done():
				return
			}
		}
	})
	return nil
}

func (s *sampler) stop() {
	if s.cancel != nil {
		s.cancel()
		s.wg.Wait()
	}
	if s.redis != nil {
		s.redis.Close()
	}
}

// read takes one sample now. A node that does not answer counts with what it had spent before and with no memory; when
// none does, that is an error.
func (s *sampler) read(ctx context.Context) (ServerSample, error) {
	var x ServerSample
	now := usage{at: time.Now()}
	nodes := s.nodes()
	silent, why := 0, error(nil)
	for i := range nodes {
		n := &nodes[i]
		if err := n.look(ctx, s.client, &x); err != nil {
			silent, why = silent+1, err
		}
		now.server += n.cpu
		x.redis = x.redis.plus(n.calls)
	}
	if silent == len(nodes) && why != nil {
		return x, why
	}
	x.redis.Scripts = scriptCalls(ctx, s.redis)
	now.self, now.machine = selfCPU(), machineCPU()
	s.add(&x, nodes, now)
	return x, nil
}

// look adds one node to x and keeps what it said of itself.
func (w *watched) look(ctx context.Context, client *metricsClient, x *ServerSample) (err error) {
	m := map[string]float64{}
	if w.admin != "" {
		if m, err = client.scrape(ctx, w.admin); err != nil {
			return err
		}
	}
	p := process{memory: m["process_resident_memory_bytes"], cpu: m["process_cpu_seconds_total"]}
	if w.pid != 0 {
		if p, err = readProcess(w.pid); err != nil {
			return fmt.Errorf("process %d: %w", w.pid, err)
		}
	}
	w.cpu, w.calls = p.cpu, redisCalls(m)
	x.Goroutines += m["go_goroutines"]
	x.Sessions += m["liveroom_sessions"]
	x.Heap += m["go_memstats_heap_inuse_bytes"]
	x.Memory += p.memory
	return nil
}

func (s *sampler) add(x *ServerSample, nodes []watched, now usage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.watched {
		if i < len(nodes) && s.watched[i].pid == nodes[i].pid { // else it has been replaced meanwhile
			s.watched[i] = nodes[i]
		}
	}
	x.At = now.at.Sub(s.began).Seconds()
	if !s.last.at.IsZero() {
		x.CPU, x.LoadCPU, x.OtherCPU = now.since(s.last)
	}
	s.last = now
	s.samples = append(s.samples, *x)
}

// since is the share of one core that each spent between two instants.
func (u usage) since(before usage) (server, self, other float64) {
	span := max(u.at.Sub(before.at).Seconds(), 1e-3)
	server, self = (u.server-before.server)/span, (u.self-before.self)/span
	if u.machine > 0 {
		other = max(0, (u.machine-before.machine)/span-server-self)
	}
	return server, self, other
}

func (s *sampler) series() []ServerSample {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.samples)
}

// spent is the processor time up to now.
func (s *sampler) spent(ctx context.Context) usage {
	if s.blind() {
		return usage{at: time.Now(), self: selfCPU(), machine: machineCPU()}
	}
	if _, err := s.read(ctx); err != nil {
		return usage{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// line is the server's state for the progress line.
func (s *sampler) line() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.samples) == 0 {
		return ""
	}
	x := s.samples[len(s.samples)-1]
	return fmt.Sprintf(", server %.0f %% CPU %s", 100*x.CPU, formatBytes(x.Memory))
}

// counters reads the server's own counters, all nodes together, by name and labels as written.
func (s *sampler) counters(ctx context.Context) map[string]float64 {
	out := map[string]float64{}
	for _, admin := range s.admins() {
		m, err := s.client.scrape(ctx, admin)
		if err != nil {
			continue // they are for comparison only
		}
		for name, v := range m {
			if bare, _, _ := strings.Cut(name, "{"); strings.HasPrefix(bare, "liveroom_") && strings.HasSuffix(bare, "_total") {
				out[name] += v
			}
		}
	}
	return out
}

// free asks every node to give back the memory that it can do without, and gives it rest to do so. It reports whether all
// nodes did.
func (s *sampler) free(ctx context.Context, rest time.Duration) bool {
	admins := s.admins()
	for _, admin := range admins {
		if s.client.free(ctx, admin) != nil {
			return false
		}
	}
	return len(admins) > 0 && waitFor(ctx, rest) == nil
}

// Environment is where a run took place.
type Environment struct {
	Go         string   `json:"go"`
	OS         string   `json:"os"`
	Processors int      `json:"processors"`
	Kernel     string   `json:"kernel,omitempty"`
	CPU        string   `json:"cpu,omitempty"`
	Load       string   `json:"load_average,omitempty"` // at the start
	Server     []string `json:"server,omitempty"`       // what /readyz says
}

func environment(ctx context.Context, s *sampler) Environment {
	e := Environment{Go: runtime.Version(), OS: runtime.GOOS + "/" + runtime.GOARCH, Processors: runtime.NumCPU()}
	e.Kernel, e.CPU, e.Load = machine()
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
