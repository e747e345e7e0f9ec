package main

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"liveroom/internal/token"
)

// TestWhatAnOperatorCanMend: each fault of the configuration is one clear line and exit code 2.
func TestWhatAnOperatorCanMend(t *testing.T) {
	t.Parallel()
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	notDir := write(t, "a file, no directory")
	notPEM := write(t, "no certificate")
	badRules := write(t, "rules:\n  - {name: x, action: danmaku, scope: conn, rate: -1, burst: 0}\n")
	unknown := write(t, "adress: :1\n")
	for _, tc := range []struct {
		name string
		args []string
		env  []string
		want string // part of a line
	}{
		{"unknown key in the file", []string{"-config", unknown}, nil, "liveserver: adress: allowed is a known key"},
		{"no such file", []string{"-config", "/nowhere.yaml"}, nil, "liveserver: config: allowed is a YAML file"},
		{"unknown variable", nil, []string{"LIVEROOM_NODES=3"}, "liveserver: LIVEROOM_NODES: allowed is a known key"},
		{"unknown flag", []string{"-fast"}, nil, "-fast"},
		{"unknown command", []string{"begin"}, nil, `liveserver: there is no command "begin": it is serve, token, check, health, `},
		{"bad value", []string{"-rooms-tick", "soon"}, nil, `liveserver: rooms.tick: allowed is a duration with its unit, such as 10s or 250ms; received "soon" (by -rooms-tick)`},
		{"busy port", []string{"-addr", busy.Addr().String()}, nil, "liveserver: addr: allowed is an address that is free to listen on; received " + busy.Addr().String() + ", which another process is using"},
		{"busy admin port", []string{"-admin-addr", busy.Addr().String()}, nil, "liveserver: admin_addr: allowed is an address that is free"},
		{"unwritable data directory", []string{"-data-dir", filepath.Join(notDir, "data")}, nil, "liveserver: data_dir: allowed is a directory that this process can write to; received mkdir "},
		{"bad certificate", []string{"-tls-cert", notPEM, "-tls-key", notPEM}, nil, "liveserver: tls.cert: allowed is a PEM certificate that belongs to tls.key; received "},
		{"half a certificate", []string{"-tls-key", notPEM}, nil, "liveserver: tls.cert: allowed is a file, since tls.key is set"},
		{"bad rules", []string{"-limits-file", badRules}, nil, "liveserver: limits.file: rules[0]"},
		{"unreachable nats", []string{"-nats", "nats://127.0.0.1:1"}, nil, "liveserver: nats: allowed is servers that can be reached"},
		{"unreachable nats with a password", []string{"-nats", "nats://u:hidden@127.0.0.1:1"}, nil, "liveserver: nats: allowed is servers that can be reached"},
		{"a redis password that was not escaped", []string{"-redis", "redis://:p/#hidden@127.0.0.1:1"}, nil, "liveserver: redis: allowed is the URL of a Redis"},
		{"bad nats ca", []string{"-nats", "tls://127.0.0.1:1", "-nats-ca", notPEM}, nil, "liveserver: nats_ca: allowed is PEM certificates; received "},
		{"bad redis", []string{"-redis", "redis://"}, nil, "liveserver: redis: allowed is the URL of a Redis; received "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			args := tc.args
			if len(args) == 0 || strings.HasPrefix(args[0], "-") { // a later flag wins, so what the case sets stays set
				args = append(append([]string{"serve"}, serverArgs(t.TempDir())...), args...)
			}
			err := run(t.Context(), args, &lines{}, &lines{}, tc.env)
			var out strings.Builder
			if code := report(&out, err); code != exitConfig {
				t.Errorf("exit code %d: %v", code, err)
			}
			if !strings.Contains(out.String(), tc.want) || strings.Contains(out.String(), "goroutine") || strings.Contains(out.String(), "hidden") {
				t.Errorf("got\n%swant a line with\n%s", out.String(), tc.want)
			}
		})
	}
}

// TestDataDirectoryInUse: two processes on one data directory would destroy it.
func TestDataDirectoryInUse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	startServer(t, dir)
	var out strings.Builder
	err := run(t.Context(), serverArgs(dir), &lines{}, &lines{}, nil)
	if code := report(&out, err); code != exitConfig || !strings.HasPrefix(out.String(), "liveserver: data_dir: ") {
		t.Errorf("exit code %d: %s", code, out.String())
	}
}

func TestSubcommands(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := token.Secret(dir); err != nil { // as a server that runs there has made it
		t.Fatal(err)
	}
	notBinary := write(t, "no binary")
	try := func(args ...string) (string, int) {
		var out, errs strings.Builder
		code := report(&errs, run(t.Context(), args, &out, &errs, nil))
		return out.String() + errs.String(), code
	}
	if out, code := try("version"); code != 0 || !strings.HasPrefix(out, "liveserver ") || !strings.Contains(out, "go1.") {
		t.Errorf("version: %d %s", code, out)
	}
	if out, code := try("version", "-sbom", os.Args[0]); code != 0 || !strings.Contains(out, `"bomFormat": "CycloneDX"`) || !strings.Contains(out, `"purl": "pkg:golang/github.com/nats-io/nats-server/v2@v2.`) || !strings.Contains(out, `"alg": "SHA-256"`) {
		t.Errorf("version -sbom: %d %s", code, out)
	}
	if out, code := try("version", notBinary); code != 2 || !strings.HasPrefix(out, "liveserver: version: allowed is the file of a liveserver; received ") {
		t.Errorf("version of a text: %d %s", code, out)
	}
	if out, code := try("health", "-admin-addr", "127.0.0.1:1"); code != 1 || !strings.HasPrefix(out, "liveserver: no server answers at 127.0.0.1:1") {
		t.Errorf("health: %d %s", code, out)
	}
	if out, code := try("check", "-config", write(t, "addr: :9\n")); code != 0 || !strings.HasPrefix(out, "The configuration is valid") {
		t.Errorf("check: %d %s", code, out)
	}
	if out, code := try("check", "-config", write(t, "addr: 9\nrooms: {tick: 0s}\n")); code != 2 || strings.Count(out, "\n") != 2 {
		t.Errorf("check of two faults: %d %s", code, out)
	}
	if out, code := try("token", "-help"); code != 0 || !strings.Contains(out, "-ttl") || strings.Contains(out, "-drain-timeout") {
		t.Errorf("token -help: code %d, output %q", code, out)
	}
	if out, code := try("-help"); code != 0 || !strings.Contains(out, "-drain-timeout") {
		t.Errorf("help: %d %s", code, out)
	}
	if out, code := try("token", "-data-dir", dir, "-role", "host"); code != 2 || !strings.HasPrefix(out, "liveserver: token: allowed is") {
		t.Errorf("a host without rooms: %d %s", code, out)
	}
	if out, code := try("token", "-data-dir", dir, "-sub", "guest-1"); code != 2 {
		t.Errorf("a guest's token: %d %s", code, out)
	}
	if out, code := try("token", "-data-dir", dir, "-role", "host", "-rooms", "demo", "-ttl", "1h"); code != 0 || strings.Count(out, ".") != 2 {
		t.Errorf("token: %d %s", code, out)
	}
	if info, err := os.Stat(filepath.Join(dir, "secret")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the secret: %v %v", info, err)
	}
}

func write(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestHealth: the health check that a container has asks the running server, and -ready asks what a load balancer would.
func TestHealth(t *testing.T) {
	t.Parallel()
	s := startServer(t, "")
	admin := strings.TrimPrefix(s.admin, "http://")
	_, port, _ := net.SplitHostPort(admin)
	for want, args := range map[string][]string{
		`{"status":"ok"}`:           {"health", "-admin-addr", admin},
		`{"status":"ok","node":"n1`: {"health", "-ready", "-admin-addr", ":" + port},
	} {
		out := &lines{}
		if err := run(t.Context(), args, out, out, nil); err != nil || !strings.HasPrefix(out.String(), want) {
			t.Errorf("%q: %q %v", args, out, err)
		}
	}
}
