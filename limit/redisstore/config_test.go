package redisstore

import (
	"crypto/tls"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestOptions pins what decides over how long a call can take.
func TestOptions(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"redis://h", "rediss://h", "unix:///s", "redis+sentinel://h/m", "redis+cluster://h", "h:1,h:2"} {
		o, err := Config{URL: url}.options()
		if err != nil {
			t.Fatalf("%s: %v", url, err)
		}
		if !o.ContextTimeoutEnabled || o.MaxRetries != -1 || o.DialerRetries != 1 || o.MaxRedirects != 2 {
			t.Errorf("%s: a context that is ignored, or something is tried twice: %+v", url, o)
		}
		if o.DialTimeout != 250*time.Millisecond || o.ReadTimeout != 250*time.Millisecond || o.WriteTimeout != 250*time.Millisecond || o.PoolTimeout != 125*time.Millisecond {
			t.Errorf("%s: dial %s, read %s, write %s, pool %s", url, o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout)
		}
		if o.PoolSize != 8 || o.PipelinePoolSize != -1 || o.ReadOnly || o.RouteByLatency || o.RouteRandomly {
			t.Errorf("%s: %+v", url, o)
		}
	}
}

func TestURLs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		url              string
		addrs            []string
		master           string
		cluster, secured bool
		db               int
		user, password   string
	}{
		{url: "redis://h", addrs: []string{"h:6379"}},
		{url: "h:7", addrs: []string{"h:7"}},
		{url: "redis://u:p%40%2F@h:7/3", addrs: []string{"h:7"}, db: 3, user: "u", password: "p@/"},
		{url: "rediss://:p@[::1]:7", addrs: []string{"[::1]:7"}, secured: true, password: "p"},
		{url: "h:1,h:2", addrs: []string{"h:1", "h:2"}, cluster: true},
		{url: "redis://h:1,g", addrs: []string{"h:1", "g:6379"}, cluster: true},
		{url: "redis+cluster://u:p@h", addrs: []string{"h:6379"}, cluster: true, user: "u", password: "p"},
		{url: "rediss+cluster://h:1,g:2", addrs: []string{"h:1", "g:2"}, cluster: true, secured: true},
		{url: "redis+sentinel://u:p@h,g:1/mine", addrs: []string{"h:26379", "g:1"}, master: "mine", user: "u", password: "p"},
		{url: "rediss+sentinel://h:2/mine/4", addrs: []string{"h:2"}, master: "mine", db: 4, secured: true},
	} {
		o, err := Config{URL: c.url}.options()
		if err != nil {
			t.Errorf("%s: %v", c.url, err)
			continue
		}
		slices.Sort(o.Addrs)
		slices.Sort(c.addrs)
		if !slices.Equal(o.Addrs, c.addrs) || o.MasterName != c.master || o.IsClusterMode != c.cluster || (o.TLSConfig != nil) != c.secured ||
			o.DB != c.db || o.Username != c.user || o.Password != c.password {
			t.Errorf("%s: %+v", c.url, o)
		}
	}
}

func TestTLSOptions(t *testing.T) {
	t.Parallel()
	o, err := Config{URL: "rediss://h?skip_verify=true", TLS: &tls.Config{ServerName: "x"}}.options()
	if err != nil || o.TLSConfig.ServerName != "x" || !o.TLSConfig.InsecureSkipVerify {
		t.Errorf("%v, %+v", err, o)
	}
	if o, err = (Config{URL: "redis://h", TLS: &tls.Config{}}).options(); err != nil || o.TLSConfig != nil {
		t.Errorf("TLS where the URL asks for none: %v", err)
	}
}

// TestNoErrorTellsThePassword opens what is at fault in every way.
func TestNoErrorTellsThePassword(t *testing.T) {
	t.Parallel()
	const secret = "s3cr3t"
	for _, url := range []string{
		"", "http://u:s3cr3t@h", "redis://u:s3cr3t/x@h:1", "redis://u:s3cr3t@h:port", "redis://u:s3cr3t@", "redis://u:s3cr3t@h/x", "redis://:s3cr3t%zz@h",
		"redis://u:s3cr3t@h?dial_timeout=9s", "redis://u:s3cr3t@h?s3cr3t=1", "redis://u:s3cr3t@h?pool_size=s3cr3t", "redis+sentinel://u:s3cr3t@h",
		"redis+sentinel://u:s3cr3t@h/m/s3cr3t", "redis+cluster://u:s3cr3t@h/1", "redis+cluster://u:s3cr3t@h?skip_verify=x", "unix://u:s3cr3t@", "s3cr3t://h",
	} {
		s, err := Open(Config{URL: url})
		if err == nil {
			t.Errorf("%s opens", url)
			_ = s.Close()
			continue
		}
		if strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", url, err)
		}
	}
}
