package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"liveroom/internal/certtest"
	"liveroom/internal/redistest"
)

// examine runs the subcommand on a machine where all is well but for what args say.
func examine(t *testing.T, args ...string) (said string, code int) {
	t.Helper()
	out, errs := &lines{}, &lines{}
	err := run(t.Context(), append([]string{"doctor", "-data-dir", t.TempDir(), "-addr", "127.0.0.1:0", "-admin-addr", "127.0.0.1:0"}, args...), out, errs, nil)
	code = report(errs, err)
	return out.String() + errs.String(), code
}

func TestDoctor(t *testing.T) {
	t.Parallel()
	redis, url := redistest.Start(t), natsServer(t)
	cert, key, _ := certtest.New(t) // ends within the hour, and is for 127.0.0.1
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name string
		args []string
		code int
		want []string // patterns of lines
	}{
		{"alone", []string{"-sessions-max", "50"}, 0, []string{`ok    configuration: valid, \d+ limit rules`, `ok    open files: limit \d+, \d+ connections of viewers, sessions.max 50`, `(ok|look)  *data_dir: a synced write takes \S+s, `, `(ok|look)  *volume of data_dir: \d+ % used`, `ok    addr: 127.0.0.1:0 is free`}},
		{"more sockets than files", []string{"-sessions-max", "9999999"}, 0, []string{`look  open files: limit `, `      → raise the limit to 10002047 or more \(ulimit -n, LimitNOFILE=`}},
		{"others", []string{"-nats", url, "-redis", redis.URL(), "-node-id", "d"}, 0, []string{`ok    redis: answers in \S+s, clocks differ by \S+`, `ok    nats 127.0.0.1:\d+: version 2\.\S+ answers in \S+; no node has started on it yet`}},
		{"others away", []string{"-nats", "nats://u:hidden@127.0.0.1:1", "-redis", "redis://:hidden@127.0.0.1:1"}, 1, []string{`look  redis: `, `BAD   nats 127.0.0.1:1: `, `liveserver: mend first what is marked BAD`}},
		{"no such name", []string{"-public-url", "https://live.invalid"}, 1, []string{`BAD   name live.invalid: `}},
		{"another's certificate", []string{"-tls-cert", cert, "-tls-key", key, "-public-url", "https://localhost"}, 1, []string{`BAD   tls.cert: is not for localhost`}},
		{"an old certificate", []string{"-tls-cert", cert, "-tls-key", key}, 0, []string{`look  tls.cert: good for 0 days`, `      → renew it`}},
		{"names of what is told and asked", []string{"-hooks-secrets", walletSecret, "-hooks-danmaku-url", "https://hook.invalid", "-webhooks", "[{name: books, url: 'https://books.invalid'}]", "-tracing-endpoint", "http://traces.invalid"}, 1,
			[]string{`BAD   name hook.invalid: `, `BAD   name books.invalid: `, `look  tracing.endpoint: `}},
		{"traces go to somebody", []string{"-tracing-endpoint", "http://" + redis.Addr}, 0, []string{`ok    tracing.endpoint: 127.0.0.1:\d+ takes connections`}},
		{"no directory", []string{"-data-dir", filepath.Join(file, "data")}, 1, []string{`BAD   data_dir: mkdir `}},
		{"no address of ours", []string{"-addr", "192.0.2.1:80"}, 1, []string{`BAD   addr: `}},
	} {
		said, code := examine(t, tc.args...)
		if code != tc.code {
			t.Errorf("%s: exit code %d\n%s", tc.name, code, said)
		}
		for _, want := range tc.want {
			if !regexp.MustCompile(`(?m)^` + want).MatchString(said) {
				t.Errorf("%s: no line like %s in\n%s", tc.name, want, said)
			}
		}
		if strings.Contains(said, "hidden") {
			t.Errorf("%s tells a password:\n%s", tc.name, said)
		}
	}
}

// TestDoctorBesideANode: it may be asked while a node serves, and then knows the ledger's clock.
func TestDoctorBesideANode(t *testing.T) {
	t.Parallel()
	url := natsServer(t)
	s := startServer(t, "", "-nats", url)
	said, code := examine(t, "-nats", url, "-addr", strings.TrimPrefix(s.url, "http://"))
	if code != 0 || !regexp.MustCompile(`(?m)^ok    nats \S+: answers in \S+s, clocks differ by \d+m?s`).MatchString(said) || !strings.Contains(said, "is in use: well, if by this node") {
		t.Errorf("exit code %d\n%s", code, said)
	}
}
