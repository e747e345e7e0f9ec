package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"liveroom/loadtest/internal/client"
	"liveroom/loadtest/internal/process"
	"liveroom/loadtest/internal/report"
)

// look is a sample with what it was made of.
type look struct {
	report.ServerSample
	used  usage
	redis redisCalls
}

// usage is the processor time spent up to an instant, in seconds.
type usage struct {
	at           time.Time
	server, self float64
	machine      float64 // all processes; 0 where it can't be known
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

// watched is one node: where it is asked, and what it said last, also when it is gone.
type watched struct {
	admin string  // "" for none
	pid   int     // 0 for none
	cpu   float64 // processor time, seconds
	calls redisCalls
}

// sampler looks at the server once a second.
type sampler struct {
	// fixed after construction
	client *metricsClient
	began  time.Time

	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu      sync.Mutex
	watched []watched // guarded by mu
	samples []look    // guarded by mu
}

// newSampler watches nodes; token is an admin's, "" for none.
func newSampler(admins []string, pids []int, token string) *sampler {
	s := &sampler{client: newMetricsClient(token), began: time.Now(), watched: make([]watched, max(len(admins), len(pids)))}
	for i, admin := range admins {
		s.watched[i].admin = admin
	}
	for i, pid := range pids {
		s.watched[i].pid = pid
	}
	return s
}

// watch adds a node, or puts it in the place of those before.
func (s *sampler) watch(admin string, pid int, alone bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if alone {
		s.watched = nil
	}
	s.watched = append(s.watched, watched{admin: admin, pid: pid})
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
}

// read takes one sample now. A node that does not answer counts with what it had spent before and with no memory; when
// none does, that is an error.
func (s *sampler) read(ctx context.Context) (x look, err error) {
	x.used.at = time.Now()
	nodes, silent := s.nodes(), 0
	for i := range nodes {
		n := &nodes[i]
		if why := n.look(ctx, s.client, &x); why != nil {
			silent, err = silent+1, why
		}
		x.used.server += n.cpu
		x.redis.add(n.calls)
	}
	if silent < len(nodes) {
		err = nil
	}
	x.used.self, x.used.machine = process.SelfCPU(), process.MachineCPU()
	x.At = x.used.at.Sub(s.began).Seconds()
	x.redis.at = x.At
	if err == nil && len(nodes) > 0 {
		s.add(&x, nodes)
	}
	return x, err
}

// look adds one node to x and keeps what it said of itself.
func (w *watched) look(ctx context.Context, client *metricsClient, x *look) (err error) {
	m := map[string]float64{}
	if w.admin != "" {
		if m, err = client.scrape(ctx, w.admin); err != nil {
			return err
		}
	}
	p := process.Usage{Memory: m["process_resident_memory_bytes"], Cpu: m["process_cpu_seconds_total"]}
	if w.pid != 0 {
		if p, err = process.Read(w.pid); err != nil {
			return fmt.Errorf("process %d: %w", w.pid, err)
		}
	}
	w.cpu, w.calls = p.Cpu, callsIn(m)
	x.Goroutines += m["go_goroutines"]
	x.Sessions += m["liveroom_sessions"]
	x.Heap += m["go_memstats_heap_inuse_bytes"]
	x.Memory += p.Memory
	return nil
}

func (s *sampler) add(x *look, nodes []watched) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.watched {
		if i < len(nodes) && s.watched[i].pid == nodes[i].pid { // else it has been replaced meanwhile
			s.watched[i] = nodes[i]
		}
	}
	if n := len(s.samples); n > 0 {
		x.CPU, x.LoadCPU, x.OtherCPU = x.used.since(s.samples[n-1].used)
	}
	s.samples = append(s.samples, *x)
}

func (s *sampler) series() (out []report.ServerSample) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.samples {
		out = append(out, x.ServerSample)
	}
	return out
}

// spent is the processor time up to now; the zero usage when the server does not say.
func (s *sampler) spent(ctx context.Context) usage {
	x, err := s.read(ctx)
	if err != nil {
		return usage{}
	}
	return x.used
}

// line is the server's state for the progress line.
func (s *sampler) line() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.samples) == 0 {
		return ""
	}
	x := s.samples[len(s.samples)-1]
	return fmt.Sprintf(", server %.0f %% CPU %s", 100*x.CPU, report.FormatBytes(x.Memory))
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
	return len(admins) > 0 && client.WaitFor(ctx, rest) == nil
}
