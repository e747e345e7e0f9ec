package main

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"time"
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
}

// sampler looks at the server once a second.
type sampler struct {
	// fixed after construction
	admins []string
	pids   []int
	client *metricsClient
	began  time.Time

	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu      sync.Mutex
	samples []ServerSample // guarded by mu
	last    usage          // guarded by mu
}

// usage is the processor time spent up to an instant, in seconds.
type usage struct {
	at           time.Time
	server, self float64
	machine      float64 // all processes; 0 where it can't be known
}

func newSampler(admins []string, pids []int) *sampler {
	return &sampler{admins: admins, pids: pids, client: newMetricsClient(), began: time.Now()}
}

// blind reports whether nothing is known of the server.
func (s *sampler) blind() bool { return len(s.admins) == 0 && len(s.pids) == 0 }

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
				_, _ = s.read(ctx) // one sample less; a server that is gone shows by its sockets
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
}

// read takes one sample now.
func (s *sampler) read(ctx context.Context) (ServerSample, error) {
	var x ServerSample
	now := usage{at: time.Now()}
	for i := range max(len(s.admins), len(s.pids)) {
		m := map[string]float64{}
		if i < len(s.admins) {
			var err error
			if m, err = s.client.scrape(ctx, s.admins[i]); err != nil {
				return x, err
			}
		}
		x.Goroutines += m["go_goroutines"]
		x.Sessions += m["liveroom_sessions"]
		x.Heap += m["go_memstats_heap_inuse_bytes"]
		memory, cpu := m["process_resident_memory_bytes"], m["process_cpu_seconds_total"]
		if i < len(s.pids) {
			p, err := readProcess(s.pids[i])
			if err != nil {
				return x, fmt.Errorf("process %d: %w", s.pids[i], err)
			}
			memory, cpu = p.memory, p.cpu
		}
		x.Memory += memory
		now.server += cpu
	}
	now.self, now.machine = selfCPU(), machineCPU()
	s.add(&x, now)
	return x, nil
}

func (s *sampler) add(x *ServerSample, now usage) {
	s.mu.Lock()
	defer s.mu.Unlock()
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
	return append([]ServerSample(nil), s.samples...)
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
	for _, admin := range s.admins {
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

// collectGarbage asks every node for a collection, through the heap profile of its pprof, and gives it rest to return
// memory to the system. It reports whether all nodes did.
func (s *sampler) collectGarbage(ctx context.Context, rest time.Duration) bool {
	if len(s.admins) == 0 {
		return false
	}
	for _, admin := range s.admins {
		if s.client.collect(ctx, admin) != nil {
			return false
		}
	}
	return waitFor(ctx, rest) == nil
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
	for _, admin := range s.admins {
		if v := s.client.version(ctx, admin); v != "" {
			e.Server = append(e.Server, v)
		}
	}
	return e
}
