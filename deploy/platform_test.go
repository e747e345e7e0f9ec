package deploy_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"

	"liveroom/internal/config"
)

// tree is a part of a YAML document.
type tree map[string]any

// at returns what stands at a path of keys, nil when there is nothing.
func (t tree) at(path ...string) any {
	var v any = t
	for _, key := range path {
		switch m := v.(type) {
		case tree:
			v = m[key]
		case map[string]any:
			v = m[key]
		default:
			return nil
		}
	}
	return v
}

// documents reads a YAML file as JSON has it, so that a schema of JSON fits.
func documents(t *testing.T, path string) (out []tree) {
	t.Helper()
	d := yaml.NewDecoder(strings.NewReader(read(t, path)))
	for {
		var raw any
		if err := d.Decode(&raw); errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		text, err := json.Marshal(raw)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, v.(map[string]any))
	}
}

// schema reads one that is shipped; part is a place in it.
func schema(t *testing.T, file, part string) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(read(t, filepath.Join("schema", file))))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.AddResource("schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("schema.json" + part)
	if err != nil {
		t.Fatalf("%s%s: %v", file, part, err)
	}
	return s
}

// checkEnvironment loads a node's settings as the server would.
func checkEnvironment(t *testing.T, where string, env map[string]any) config.Config {
	t.Helper()
	var environ []string
	for k, v := range env {
		environ = append(environ, fmt.Sprintf("%s=%v", k, v))
	}
	c, err := config.Load(nil, environ, nil)
	if err != nil {
		t.Errorf("%s: %v", where, err)
	}
	return c
}

// afterDrain is what a node may take beyond drain_delay and drain_timeout: 5 s for the last answers, then up to ten each for requests, likes, quotas
// and the store (docs/runbook.md, "A stop that takes too long").
const afterDrain = 45 * time.Second

// checkGrace compares how long a node may take to stop with how long it is given.
func checkGrace(t *testing.T, where string, given, before time.Duration, c config.Config) {
	t.Helper()
	if need := before + c.DrainDelay + c.DrainTimeout + afterDrain; given < need {
		t.Errorf("%s: killed after %v, and may need %v", where, given, need)
	}
}

// TestCompose: the file is of the Compose Specification, what it mounts is there, and its nodes have settings that a server takes.
func TestCompose(t *testing.T) {
	compose := documents(t, "compose.yaml")[0]
	if err := schema(t, "compose.json", "").Validate(map[string]any(compose)); err != nil {
		t.Fatal(err)
	}
	services := compose.at("services").(map[string]any)
	nodes, images := 0, map[string]int{}
	for name, v := range services {
		s := tree(v.(map[string]any))
		image, _, _ := strings.Cut(fmt.Sprint(s.at("image")), ":")
		images[image]++
		mounts, _ := s.at("volumes").([]any)
		for _, m := range mounts {
			from, _, _ := strings.Cut(fmt.Sprint(m), ":")
			if _, err := os.Stat(from); err != nil && compose.at("volumes", from) == nil && from != "./tls" { // made by hand
				t.Errorf("%s: %s is neither a file here nor a volume", name, from)
			}
		}
		if image == "nats" {
			checkNATSArguments(t, name, s.at("command").([]any))
		}
		if s.at("build") == nil {
			continue
		}
		nodes++
		if _, err := os.Stat(filepath.Join(fmt.Sprint(s.at("build", "context")), fmt.Sprint(s.at("build", "dockerfile")))); err != nil {
			t.Error(err)
		}
		c := checkEnvironment(t, name, s.at("environment").(map[string]any))
		if c.NodeID != name || len(c.NATS) != 3 || c.Redis == "" {
			t.Errorf("%s is node %q with NATS at %v and Redis at %q", name, c.NodeID, c.NATS, c.Redis)
		}
		if proxy := c.TrustedProxies; len(proxy) != 1 || proxy[0].Addr().String() != tree(services).at("nginx", "networks", "default", "ipv4_address") {
			t.Errorf("%s trusts %v, and not nginx", name, proxy)
		}
		grace, err := time.ParseDuration(fmt.Sprint(s.at("stop_grace_period")))
		if err != nil {
			t.Error(err)
		}
		checkGrace(t, name, grace, 0, c)
	}
	if nodes != 3 || images["nats"] != 3 || images["redis"] != 1 || images["nginx"] != 1 || images["prom/prometheus"] != 1 || images["grafana/grafana"] != 1 {
		t.Errorf("%d nodes, and %v", nodes, images)
	}
	for _, file := range []string{"grafana/provisioning/datasources/prometheus.yaml", "grafana/provisioning/dashboards/liveroom.yaml"} {
		if v := documents(t, file)[0].at("apiVersion"); fmt.Sprint(v) != "1" {
			t.Errorf("%s: apiVersion %v", file, v)
		}
	}
	if out, err := exec.CommandContext(t.Context(), "promtool", "check", "config", "prometheus/prometheus.yml").CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}
}

// TestKubernetes: each object is of its kind's schema, strictly; what names another finds it; and the nodes' settings, probes and time
// to stop are such that a server can live with.
func TestKubernetes(t *testing.T) {
	kustomization := documents(t, "kubernetes/kustomization.yaml")[0]
	listed := []string{"kustomization.yaml"}
	objects := map[string]tree{} // by kind
	var selected []tree
	for _, file := range kustomization.at("resources").([]any) {
		listed = append(listed, fmt.Sprint(file))
		for _, o := range documents(t, filepath.Join("kubernetes", fmt.Sprint(file))) {
			kind := fmt.Sprintf("%v/%v", o.at("apiVersion"), o.at("kind"))
			objects[fmt.Sprint(o.at("kind"))] = o
			for _, path := range [][]string{{"spec", "selector", "matchLabels"}, {"spec", "selector"}, {"spec", "podSelector", "matchLabels"}} {
				if m, ok := o.at(path...).(map[string]any); ok && m["matchLabels"] == nil {
					selected = append(selected, m)
				}
			}
			if kind == "monitoring.coreos.com/v1/ServiceMonitor" { // no kind of Kubernetes' own
				continue
			}
			if err := schema(t, "kubernetes.json", "#/kinds/"+strings.ReplaceAll(kind, "/", "~1")).Validate(map[string]any(o)); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
	for _, file := range entries(t, "kubernetes") {
		if !slices.Contains(listed, file) {
			t.Errorf("%s is in no list", file)
		}
	}
	set := objects["StatefulSet"]
	labels := set.at("spec", "template", "metadata", "labels").(map[string]any)
	if len(selected) < 6 {
		t.Errorf("only %d selectors were found", len(selected))
	}
	for _, s := range selected {
		for k, v := range s {
			if labels[k] != v {
				t.Errorf("a selector wants %s=%v, pods have %v", k, v, labels)
			}
		}
	}
	pod := tree(set.at("spec", "template", "spec").(map[string]any))
	server := tree(pod.at("containers").([]any)[0].(map[string]any))
	env := map[string]any{}
	for _, v := range server.at("env").([]any) {
		e := tree(v.(map[string]any))
		env[fmt.Sprint(e.at("name"))] = cmp.Or(e.at("value"), any("liveroom-0"))
	}
	for k, v := range objects["ConfigMap"].at("data").(map[string]any) {
		env[k] = v
	}
	for _, line := range imageEnvironment(t) {
		k, v, _ := strings.Cut(line, "=")
		env[k] = v
	}
	c := checkEnvironment(t, "kubernetes", env)
	grace, _ := pod.at("terminationGracePeriodSeconds").(json.Number).Int64()
	before, _ := server.at("lifecycle", "preStop", "sleep", "seconds").(json.Number).Int64()
	checkGrace(t, "kubernetes", time.Duration(grace)*time.Second, time.Duration(before)*time.Second, c)
	ports := map[string]string{}
	for _, v := range server.at("ports").([]any) {
		p := tree(v.(map[string]any))
		ports[fmt.Sprint(p.at("name"))] = fmt.Sprintf(":%v", p.at("containerPort"))
	}
	if ports["viewers"] != c.Addr || ports["operators"] != c.AdminAddr {
		t.Errorf("ports %v, and the server listens on %s and %s", ports, c.Addr, c.AdminAddr)
	}
	if c.DataDir != server.at("volumeMounts").([]any)[0].(map[string]any)["mountPath"] {
		t.Errorf("nothing is mounted at %s", c.DataDir)
	}
	for _, probe := range []string{"startupProbe", "livenessProbe", "readinessProbe"} {
		if server.at(probe, "httpGet", "port") != "operators" {
			t.Errorf("%s asks at %v", probe, server.at(probe, "httpGet"))
		}
	}
	if uid := fmt.Sprint(pod.at("securityContext", "runAsUser")); !strings.Contains(read(t, "container/Containerfile"), "USER "+uid+":"+uid) {
		t.Errorf("the image has no user %s", uid)
	}
	if endpoint := objects["ServiceMonitor"].at("spec", "endpoints").([]any)[0].(map[string]any); endpoint["port"] != "operators" || endpoint["path"] != "/metrics" {
		t.Errorf("scrapes %v", endpoint)
	}
}

// checkNATSArguments reads a NATS server's command line as the server would: it has its own name, and routes to the others alone.
func checkNATSArguments(t *testing.T, name string, command []any) {
	t.Helper()
	var args []string
	for _, a := range command {
		args = append(args, strings.Replace(fmt.Sprint(a), "/etc/nats/", "nats/", 1))
	}
	o, err := server.ConfigureOptions(flag.NewFlagSet(name, flag.ContinueOnError), args, nil, nil, nil)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	for _, r := range o.Routes {
		if r.Hostname() == name || !strings.HasPrefix(r.Hostname(), "nats") {
			t.Errorf("%s has a route to %s", name, r.Hostname())
		}
	}
	if o.ServerName != name || len(o.Routes) != 2 || !o.SyncAlways || o.Cluster.Name == "" {
		t.Errorf("%s is %q with %d routes, synced %v, cluster %q", name, o.ServerName, len(o.Routes), o.SyncAlways, o.Cluster.Name)
	}
}

func entries(t *testing.T, dir string) (names []string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

// TestSystemd: systemd finds no fault with the unit and calls its exposure ok, and its settings and times are such that a server takes.
func TestSystemd(t *testing.T) {
	unit := read(t, "systemd/liveserver.service")
	installed := filepath.Join(t.TempDir(), "liveserver.service") // verify wants the program to be there
	if err := os.WriteFile(installed, []byte(strings.ReplaceAll(unit, "/usr/bin/liveserver", "/bin/true")), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"verify", "--man=no"}, {"security", "--offline=true", "--no-pager", "--threshold=15"}} { // tenths
		out, err := exec.CommandContext(t.Context(), "systemd-analyze", append(args, installed)...).CombinedOutput()
		if errors.Is(err, exec.ErrNotFound) {
			t.Fatal("systemd-analyze is missing: make systemd, or apt-get install systemd")
		}
		if err != nil || args[0] == "verify" && len(out) > 0 {
			t.Errorf("systemd-analyze %v: %v\n%s", args, err, out)
		}
	}
	setting := func(key string) string {
		m := regexp.MustCompile(`(?m)^` + key + `=(.*)$`).FindStringSubmatch(unit)
		if m == nil {
			t.Fatalf("no %s=", key)
		}
		return m[1]
	}
	env := strings.Fields(setting("Environment"))
	c, err := config.Load([]string{"-config", "systemd/liveroom.yaml"}, env, nil)
	if err != nil {
		t.Error(err)
	}
	if c.DataDir != "/var/lib/"+setting("StateDirectory") {
		t.Errorf("data in %s, which the unit does not make", c.DataDir)
	}
	stop, err := time.ParseDuration(setting("TimeoutStopSec") + "s")
	if err != nil {
		t.Error(err)
	}
	checkGrace(t, "systemd", stop, 0, c)
	if setting("ExecStart") != "/usr/bin/liveserver -config /etc/liveroom/liveroom.yaml" {
		t.Errorf("starts %s", setting("ExecStart"))
	}
}

// TestTimeOutsOfProxies: each waits for three heartbeats of sockets on which nobody speaks.
func TestTimeOutsOfProxies(t *testing.T) {
	c, err := config.Load(nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for file, pattern := range map[string]string{"proxy/nginx.conf": `location = /ws \{[^}]*proxy_read_timeout (\w+);`, "proxy/haproxy.cfg": `timeout tunnel +(\w+)`} {
		m := regexp.MustCompile(pattern).FindStringSubmatch(read(t, file))
		if m == nil {
			t.Fatalf("%s names no time-out", file)
		}
		if d, err := time.ParseDuration(m[1]); err != nil || d < 3*c.Sessions.Heartbeat {
			t.Errorf("%s: %v, heartbeats come every %v (%v)", file, d, c.Sessions.Heartbeat, err)
		}
	}
}
