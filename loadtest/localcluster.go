package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"text/tabwriter"

	"liveroom/loadtest/internal/process"
)

// clusterOptions is everything the command cluster can be told. The flags' texts document the fields.
type clusterOptions struct {
	nodes, port, adminPort int
	dataDir                string
	serverOptions          // of which only what concerns starting nodes is used
}

// clusterAbout is the command in a line of the help.
const clusterAbout = "starts several nodes, a Redis and a NATS server here, for people to try; Ctrl-C stops all of it"

func parseCluster(args []string, usage io.Writer) (*clusterOptions, error) {
	o := &clusterOptions{}
	set := flag.NewFlagSet("loadtest cluster", flag.ContinueOnError)
	set.IntVar(&o.nodes, "nodes", 3, "how many")
	set.IntVar(&o.port, "port", 8080, "of the one address for viewers; the nodes' own are the next ones; 0: free ones")
	set.IntVar(&o.adminPort, "admin-port", 8181, "of the first node's admin page; the others have the next ones; 0: free ones")
	set.StringVar(&o.dataDir, "data-dir", "", "where the nodes keep their data; empty: a directory that is removed at the end")
	o.startFlags(set)
	if err := parseFlags(set, clusterAbout, args, usage); err != nil {
		return nil, err
	}
	o.spawn = max(o.nodes, 2) // one node has its NATS inside, and then there is nothing to share
	if o.nodes < 1 || o.port < 0 || o.adminPort < 0 {
		return nil, errors.New("-nodes must be above 0, ports not below")
	}
	return o, nil
}

// cluster runs nodes until ctx ends or none is left. A node that ends on the way is told of, and the others go on: that
// is what one wants to look at.
func cluster(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parseCluster(args, stdout)
	if err != nil {
		return badFlags("cluster", err, stderr)
	}
	if err := o.run(ctx, stdout, stderr); err != nil && ctx.Err() == nil {
		fmt.Fprintf(stderr, "loadtest cluster: %v\n", err)
		return exitMissed
	}
	return exitOK
}

func (o *clusterOptions) run(ctx context.Context, stdout, stderr io.Writer) error {
	dir := o.dataDir
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp("", "liveroom-cluster-"); err != nil {
			return err
		}
		defer os.RemoveAll(dir)
	}
	p := newProgress(stderr, false)
	defer p.end()
	f, err := newFleet(ctx, dir, &o.serverOptions, p)
	if f != nil {
		defer f.stop()
	}
	if err != nil {
		return err
	}
	f.extra = []string{"-print-tokens", "always", "-drain-timeout", "2s", "-log-level", "warn"}
	if o.rules != "" {
		rules, err := filepath.Abs(o.rules)
		if err != nil {
			return err
		}
		f.extra = append(f.extra, "-limits-file", rules)
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", local(o.port, 0))
	if err != nil {
		return err
	}
	defer l.Close()
	for i := range o.nodes {
		if _, err := f.launch(ctx, nodeName(i), "-addr", local(o.port, i+1), "-admin-addr", local(o.adminPort, i)); err != nil {
			return err
		}
	}
	proxy := &http.Server{Handler: front(f.hosts()), BaseContext: func(net.Listener) context.Context { return ctx }}
	var serving sync.WaitGroup
	defer serving.Wait()
	defer proxy.Close()
	serving.Go(func() { _ = proxy.Serve(l) }) // until it is closed
	p.end()
	if err := f.announce(stdout, l.Addr().(*net.TCPAddr).Port); err != nil {
		return err
	}
	defer p.line("stopping")
	return f.watch(ctx, stderr)
}

// local is the i-th address from a port on, or one with a free port.
func local(port, i int) string {
	if port == 0 {
		return "localhost:0"
	}
	return fmt.Sprintf("localhost:%d", port+i)
}

// hosts are the nodes' addresses for viewers, as host:port.
func (f *fleet) hosts() (out []string) {
	for _, n := range f.nodes {
		out = append(out, strings.TrimPrefix(n.url, "http://"))
	}
	return out
}

// announce prints where people find the nodes: all of them behind the port in front, and each by itself.
func (f *fleet) announce(w io.Writer, port int) error {
	fmt.Fprintf(w, "\nliveroom is up: %d nodes that behave as one.\n\n", len(f.nodes))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	name := "all"
	for _, page := range f.nodes[0].pages {
		if behind, ok := strings.CutPrefix(page.url, f.nodes[0].url); ok {
			fmt.Fprintf(t, "  %s\t%s\thttp://localhost:%d%s\n", name, page.name, port, behind)
			name = ""
		}
	}
	for _, n := range f.nodes {
		name := n.Name
		for _, page := range n.pages {
			fmt.Fprintf(t, "  %s\t%s\t%s\n", name, page.name, page.url)
			name = ""
		}
		fmt.Fprintf(t, "\tprocess\t%d\n", n.Cmd.Process.Pid)
	}
	fmt.Fprintf(t, "  shared\tNATS\t%s\n\tRedis\t%s\n", f.shared.NatsURL, f.shared.RedisURL)
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprint(w, "\nOpen the first viewer page in two windows and type. Kill a process to see its viewers move on to another node. Ctrl-C stops all of it.\n\n")
	return err
}

// errNoneLeft ends a cluster whose nodes have all ended.
var errNoneLeft = errors.New("no node is left")

// watch tells of every child that ends, until ctx ends or no node is left.
func (f *fleet) watch(ctx context.Context, w io.Writer) error {
	all := f.shared.Children()
	for _, n := range f.nodes {
		all = append(all, n.Child)
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var wg sync.WaitGroup
	for _, c := range all {
		wg.Go(func() {
			select {
			case <-c.Gone:
				fmt.Fprintln(w, f.obituary(c))
				if len(f.living()) == 0 {
					stop(errNoneLeft)
				}
			case <-ctx.Done():
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// obituary is one line: what has ended, how, and what that means to the others.
func (f *fleet) obituary(c *process.Child) string {
	line := fmt.Sprintf("%s has ended: %s", c.Name, c.Ended())
	if said := c.Log.Last(); said != "" && c.Failed() {
		line += " (" + said + ")"
	}
	switch c {
	case f.shared.Redis:
		return line + "; every node grants its part of each quota, or what a rule's on_outage says"
	case f.shared.Nats:
		return line + "; danmaku and likes go on among the viewers of one node, gifts get try_later"
	}
	left := f.living()
	if len(left) == 0 {
		return line
	}
	return line + "; its viewers reconnect to " + strings.Join(left, " or ") + " and resume, counts are right within 6 s"
}

// living are the names of the nodes that have not ended.
func (f *fleet) living() (out []string) {
	for _, n := range f.nodes {
		if n.Alive() {
			out = append(out, n.Name)
		}
	}
	return out
}

// front is the one address of a cluster for people: it hands each request to a node that takes it, to one after the other,
// so that the viewers of a node that has died find another at the same address.
func front(nodes []string) http.Handler {
	var turn atomic.Uint64
	dial := func(ctx context.Context, network, _ string) (c net.Conn, err error) {
		for range nodes {
			if c, err = new(net.Dialer).DialContext(ctx, network, nodes[turn.Add(1)%uint64(len(nodes))]); err == nil {
				break
			}
		}
		return c, err
	}
	return &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = "http", r.In.Host },
		Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true},
		ErrorLog:  log.New(io.Discard, "", 0), // what a viewer who went away, or a node that died, leaves behind
	}
}
