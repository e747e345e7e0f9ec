package config

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"liveroom/protocol"
)

// TestEveryFieldIsOneSetting holds Config and the table together: each leaf field has exactly one row.
func TestEveryFieldIsOneSetting(t *testing.T) {
	var c Config
	rows := map[any]string{}
	for _, s := range Settings() {
		p := s.into(&c)
		if other, twice := rows[p]; twice {
			t.Errorf("%s and %s are the same field", s.Key, other)
		}
		rows[p] = s.Key
		if s.Doc == "" || s.Unit == "" || !strings.HasSuffix(s.Doc, ".") {
			t.Errorf("%s: unit and a documenting sentence are needed", s.Key)
		}
	}
	var walk func(v reflect.Value, path string)
	walk = func(v reflect.Value, path string) {
		for i := range v.NumField() {
			f := v.Field(i)
			if !v.Type().Field(i).IsExported() {
				continue
			}
			name := path + v.Type().Field(i).Name
			if f.Kind() == reflect.Struct {
				walk(f, name+".")
				continue
			}
			if _, ok := rows[f.Addr().Interface()]; !ok {
				t.Errorf("Config.%s is in no row of the table", name)
			}
			delete(rows, f.Addr().Interface())
		}
	}
	walk(reflect.ValueOf(&c).Elem(), "")
	for _, key := range rows {
		t.Errorf("%s points at no field of Config", key)
	}
}

func TestNamesAreUnique(t *testing.T) {
	seen := map[string]string{fileFlag: "the file", EnvPrefix + "CONFIG": "the file"}
	for _, s := range Settings() {
		for _, name := range []string{s.Flag(), s.Env()} {
			if other, twice := seen[name]; twice {
				t.Errorf("%s names both %s and %s", name, s.Key, other)
			}
			seen[name] = s.Key
		}
	}
}

func TestDefaultsAreValid(t *testing.T) {
	c, err := Load(nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.Addr != ":8080" || c.AdminAddr != "127.0.0.1:8081" || !c.Embedded() || !c.Auth.Guests || c.DrainTimeout != 10*time.Second {
		t.Errorf("defaults: %+v", c)
	}
	if len(c.Gifts.Catalogue) != 6 || c.Gifts.Catalogue[0].ID != "rose" || c.Gifts.Catalogue[0].Names["zh"] != "玫瑰" {
		t.Errorf("gifts: %+v", c.Gifts)
	}
}

// TestEveryWay sets each kind of value by file, environment and flag, and each wins over the one before.
func TestEveryWay(t *testing.T) {
	file := write(t, `
addr: :9000
admin_addr: 127.0.0.1:9001
drain_timeout: 3s
compression: off
rooms: {auto_create: false, max: 7}
trusted_proxies: [10.0.0.0/8, "::1"]
origins: [https://a.example]
gifts: [{id: pin, name: Pin, price: 2}]
tls:
`)
	env := []string{"LIVEROOM_CONFIG=" + file, "LIVEROOM_ADDR=:9100", "LIVEROOM_ROOMS_MAX=8", "HOME=/root"}
	c, err := Load([]string{"-rooms-max", "9", "-origins=https://b.example,https://c.example"}, env, nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.AdminAddr != "127.0.0.1:9001" || c.Addr != ":9100" || c.Rooms.Max != 9 || c.Rooms.AutoCreate || c.DrainTimeout != 3*time.Second {
		t.Errorf("order of sources: %+v", c)
	}
	if c.Compression != CompressionOff {
		t.Errorf("compression %q: off is a word here, no boolean", c.Compression)
	}
	if want := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::1/128")}; !reflect.DeepEqual(c.TrustedProxies, want) {
		t.Errorf("trusted proxies %v", c.TrustedProxies)
	}
	if want := []string{"https://b.example", "https://c.example"}; !reflect.DeepEqual(c.Origins, want) {
		t.Errorf("origins %v", c.Origins)
	}
	if want := []protocol.CatalogueGift{{ID: "pin", Name: "Pin", Price: 2}}; !reflect.DeepEqual(c.Gifts.Catalogue, want) {
		t.Errorf("gifts %+v", c.Gifts)
	}
	if c, err = Load([]string{"-rooms-auto-create"}, env, nil); err != nil || !c.Rooms.AutoCreate {
		t.Errorf("a bare boolean flag: %v %v", c.Rooms.AutoCreate, err)
	}
	if c, err = Load(nil, []string{`LIVEROOM_GIFTS=[{id: cup, name: Cup, price: 3}]`}, nil); err != nil || c.Gifts.Catalogue[0].ID != "cup" {
		t.Errorf("gifts by environment: %+v %v", c.Gifts, err)
	}
}

// TestGiftsByEachOfTheirNames: the catalogue had the name that is a section now.
func TestGiftsByEachOfTheirNames(t *testing.T) {
	const pin = "[{id: pin, name: Pin, price: 2}]"
	for name, load := range map[string]func() (Config, error){
		"the file": func() (Config, error) {
			return Load([]string{"-config", write(t, "gifts: {authority: open, catalogue: "+pin+"}\n")}, nil, nil)
		},
		"the file, as before":   func() (Config, error) { return Load([]string{"-config", write(t, "gifts: "+pin+"\n")}, nil, nil) },
		"a flag":                func() (Config, error) { return Load([]string{"-gifts-catalogue", pin}, nil, nil) },
		"a flag, as before":     func() (Config, error) { return Load([]string{"-gifts", pin}, nil, nil) },
		"a variable":            func() (Config, error) { return Load(nil, []string{"LIVEROOM_GIFTS_CATALOGUE=" + pin}, nil) },
		"a variable, as before": func() (Config, error) { return Load(nil, []string{"LIVEROOM_GIFTS=" + pin}, nil) },
	} {
		c, err := load()
		if err != nil || len(c.Gifts.Catalogue) != 1 || c.Gifts.Catalogue[0].ID != "pin" {
			t.Errorf("%s: %+v, %v", name, c.Gifts, err)
		}
		if chosen := name == "the file"; c.Gifts.Chosen() != chosen || (c.Gifts.Authority == GiftsOpen) != chosen {
			t.Errorf("%s: authority %q, chosen %v", name, c.Gifts.Authority, c.Gifts.Chosen())
		}
	}
}

// TestServiceLinks: a Service called liveroom must not keep its own pods from starting.
func TestServiceLinks(t *testing.T) {
	env := []string{
		"LIVEROOM_SERVICE_HOST=10.0.0.9", "LIVEROOM_SERVICE_PORT=8080", "LIVEROOM_SERVICE_PORT_HTTP=8080", "LIVEROOM_PORT=tcp://10.0.0.9:8080",
		"LIVEROOM_PORT_8080_TCP=tcp://10.0.0.9:8080", "LIVEROOM_PORT_8080_TCP_PROTO=tcp", "LIVEROOM_ADMIN_PORT_8081_TCP_ADDR=10.0.0.8",
	}
	if _, err := Load(nil, env, nil); err != nil {
		t.Error(err)
	}
	for _, s := range Settings() {
		if serviceLink.MatchString(s.Env()) {
			t.Errorf("%s would be taken for one of Kubernetes", s.Env())
		}
	}
}

func TestFaultsNamePathAllowedReceived(t *testing.T) {
	for _, tc := range []struct {
		name, file string
		args, env  []string
		want       []string // each is part of one line
	}{
		{name: "unknown key in the file", file: "adr: :1\n", want: []string{"adr: allowed is a known key; received an unknown one, perhaps addr was meant (in "}},
		{name: "unknown nested key", file: "tls: {certificate: x}\n", want: []string{"tls.certificate: allowed is a known key"}},
		{name: "section as a value", file: "tls: 5\n", want: []string{"tls: allowed is a known key"}},
		{name: "unknown variable", env: []string{"LIVEROOM_DATADIR=x"}, want: []string{"LIVEROOM_DATADIR: allowed is a known key; received an unknown one, perhaps LIVEROOM_DATA_DIR was meant (in the environment)"}},
		{name: "unknown flag", args: []string{"-nope"}, want: []string{"-nope"}},
		{name: "stray argument", args: []string{"start"}, want: []string{`"start" is no flag, and no command can stand here`}},
		{name: "bad duration", args: []string{"-drain-timeout", "10"}, want: []string{`drain_timeout: allowed is a duration with its unit, such as 10s or 250ms; received "10" (by -drain-timeout)`}},
		{name: "several at once", env: []string{"LIVEROOM_ADDR=8080", "LIVEROOM_ROOMS_MAX=none", "LIVEROOM_LOG_LEVEL=loud"}, want: []string{"addr: allowed is host:port", "log.level: allowed is one of debug, info, warn, error; received \"loud\" (by LIVEROOM_LOG_LEVEL)", "rooms.max: allowed is a whole number"}},
		{name: "a nats scheme", args: []string{"-nats", "nats://a:4222,http://u:hidden@b:4222"}, want: []string{`nats[1]: allowed is a URL that begins with nats:// or tls://; received "http://…@b:4222"`}},
		{name: "files for embedded nats", args: []string{"-nats-creds", "x"}, want: []string{"nats: allowed is URLs, since nats_creds, nats_ca or nats_cert is set; received embedded"}},
		{name: "a password that was not escaped", args: []string{"-nats", "nats://u:p#/@hidden@b:4222"}, want: []string{"nats[0]: allowed is a URL"}},
		{name: "a nats user without a scheme", args: []string{"-nats", "admin:hidden@b:4222"}, want: []string{"nats[0]: allowed is a URL that begins with nats:// or tls://; received one that can't be read"}},
		{name: "a key set's scheme", args: []string{"-auth-jwks-url", "ftp://u:hidden@idp.test/keys?key=hidden"}, want: []string{`auth.jwks_url: allowed is a URL that begins with https:// or http://; received "ftp://…@idp.test"`}},
		{name: "half a nats certificate", args: []string{"-nats", "tls://a:4222", "-nats-key", "k"}, want: []string{"nats_cert: allowed is a file, since nats_key is set; received nothing"}},
		{name: "a redis scheme", args: []string{"-redis", "http://:hidden@r:6379"}, want: []string{`redis: allowed is one of redis://, rediss://, redis+sentinel://, rediss+sentinel://, redis+cluster://, rediss+cluster://, unix://; received "http://"`}},
		{name: "a redis ca without tls", args: []string{"-redis", "redis://r", "-redis-ca", "ca.pem"}, want: []string{"redis_ca: allowed is nothing, unless redis begins with rediss; received a file"}},
		{name: "short secret is not shown", args: []string{"-auth-secret", "hunter2"}, want: []string{"auth.secret: allowed is 16 bytes or more, better 32; received 7 bytes"}},
		{name: "half a certificate", args: []string{"-tls-cert", "c.pem"}, want: []string{"tls.key: allowed is a file, since tls.cert is set"}},
		{name: "gift", file: "gifts: [{id: a b, name: x, price: 0}]\n", want: []string{"gifts.catalogue[0].id", "gifts.catalogue[0].price: allowed is a whole number from 1 to 100000000000; received 0"}},
		{name: "unknown field of a gift", file: "gifts: [{id: a, name: x, prize: 1}]\n", want: []string{"gifts.catalogue: allowed is a list of gifts"}},
		{name: "who pays", args: []string{"-gifts-authority", "nobody"}, want: []string{`gifts.authority: allowed is one of backend, hook, open; received "nobody" (by -gifts-authority)`}},
		{name: "a hook without an address", args: []string{"-gifts-authority", "hook"}, want: []string{"hooks.gift.url: allowed is a URL, since gifts.authority is hook; received nothing"}},
		{name: "a hook over the open road", file: "hooks: {secrets: [whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw], gift: {url: 'http://192.0.2.1/h?key=hidden'}}\n", want: []string{"hooks.gift.url: allowed is https://host/path, or http:// where hooks.plain_http lets it; received plain http to 192.0.2.1, which is not loopback"}},
		{name: "webhooks", file: "webhooks: [{name: a b, url: 'https://u:hidden@p.example/'}, {name: x, url: 'https://p.example/', rooms: [a/b], kinds: [joins]}, {name: x, url: 'https://p.example/'}]\n", want: []string{
			"hooks.secrets: allowed is one or more, since webhooks is set; received none", `webhooks[0].name: allowed is 1 to 32 of A-Z a-z 0-9 _ -; received "a b"`,
			"webhooks[0].url: allowed is https://host/path, or http:// where hooks.plain_http lets it; received one with a user in it", "webhooks[1].kinds: allowed is announcement", "webhooks[1].rooms: allowed is each 1 to 64",
			`webhooks[2].name: allowed is a name once; received "x" again`,
		}},
		{name: "a webhook with a field too many", file: "webhooks: [{name: x, ulr: hidden}]\n", want: []string{"webhooks: allowed is a list of endpoints, each {name, url, rooms, kinds} ("}},
		{name: "a hook without a secret", args: []string{"-hooks-gift-url", "https://p.example/hooks"}, want: []string{"hooks.secrets: allowed is one or more, since hooks.gift.url is set; received none"}},
		{name: "three hooks", args: []string{"-hooks-join-url", "ftp://p/", "-hooks-danmaku-url", "https://p.example/d", "-hooks-join-on-timeout", "sender_only", "-hooks-danmaku-on-timeout", "refuse"}, want: []string{
			`hooks.danmaku.on_timeout: allowed is one of allow, sender_only, hold; received "refuse" (by -hooks-danmaku-on-timeout)`,
			`hooks.join.on_timeout: allowed is one of refuse, allow; received "sender_only" (by -hooks-join-on-timeout)`,
			"hooks.join.url: allowed is https://host/path, or http:// where hooks.plain_http lets it; received no URL that begins with https:// or http://", "hooks.secrets: allowed is one or more, since hooks.join.url is set; received none",
		}},
		{name: "a hook's secret", args: []string{"-hooks-secrets", "whsec_hidden", "-hooks-gift-timeout", "5s"}, want: []string{"hooks.gift.timeout: allowed is 50ms to 2s; received 5s", "hooks.secrets[0]: allowed is whsec_ and the base64 of 24 to 64 random bytes; received one that is not shown"}},
		{name: "half a sign-in", args: []string{"-admin-oidc-issuer", "https://id.example", "-admin-oidc-client-secret", "hidden", "-admin-oidc-scopes", "profile", "-admin-oidc-url", "https://ops.example/", "-admin-oidc-claim", ""}, want: []string{
			"admin_oidc.admins: allowed is one value or more, here or in admin_oidc.moderators or admin_oidc.readers", "admin_oidc.claim: allowed is a name", "admin_oidc.client_id: allowed is a text, since admin_oidc.issuer is set; received nothing",
			`admin_oidc.scopes: allowed is openid, alone or among others; received "profile"`, `admin_oidc.url: allowed is scheme://host or scheme://host:port, such as https://live.example.com; received "https://ops.example/"`}},
		{name: "a sign-in nowhere", args: []string{"-admin-oidc-admins", "boss"}, want: []string{"admin_oidc.issuer: allowed is a URL, since another of admin_oidc is set; received nothing"}},
		{name: "a key that is gone", file: "auth: {guest_gifts: true}\n", want: []string{"auth.guest_gifts: allowed is nothing: gifts.authority says who may give, and open lets guests too; received a value (in "}},
		{name: "a variable that is gone", env: []string{"LIVEROOM_AUTH_GUEST_GIFTS=true"}, want: []string{"LIVEROOM_AUTH_GUEST_GIFTS: allowed is nothing: gifts.authority says"}},
		{name: "a flag that is gone", args: []string{"-auth-guest-gifts"}, want: []string{"auth-guest-gifts: it is gone, and allowed is nothing: gifts.authority says"}},
		{name: "no YAML", file: "addr: [\n", want: []string{"config: allowed is one YAML mapping"}},
		{name: "key twice", file: "addr: :1\naddr: :2\n", want: []string{"config: allowed is one YAML mapping"}},
		{name: "compression", env: []string{"LIVEROOM_COMPRESSION=gzip"}, want: []string{`compression: allowed is one of off, auto, on; received "gzip"`}},
		{name: "proxy", args: []string{"-trusted-proxies", "proxy.example"}, want: []string{"trusted_proxies: allowed is addresses or CIDR"}},
		{name: "origin", args: []string{"-origins", "https://a.example/path"}, want: []string{"origins: allowed is scheme://host"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			args := tc.args
			if tc.file != "" {
				args = append([]string{"-config", write(t, tc.file)}, args...)
			}
			_, err := Load(args, tc.env, nil)
			var faults Faults
			if !errors.As(err, &faults) {
				t.Fatalf("got %v", err)
			}
			if len(faults) != len(tc.want) {
				t.Errorf("%d faults, want %d", len(faults), len(tc.want))
			}
			for i, line := range strings.Split(err.Error(), "\n") {
				if i < len(tc.want) && !strings.Contains(line, tc.want[i]) {
					t.Errorf("line %q lacks %q", line, tc.want[i])
				}
			}
			if strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "hidden") {
				t.Errorf("a secret is shown: %v", err)
			}
		})
	}
}

func TestHelp(t *testing.T) {
	if _, err := Load([]string{"-help"}, nil, nil); !errors.Is(err, ErrHelp) {
		t.Fatalf("got %v", err)
	}
	var b strings.Builder
	Usage(&b)
	for _, s := range Settings() {
		if !strings.Contains(b.String(), "-"+s.Flag()+" ") || !strings.Contains(Markdown(), "`"+s.Key+"`") {
			t.Errorf("%s is not documented", s.Key)
		}
	}
}

func FuzzFile(f *testing.F) {
	f.Add("addr: :1\n")
	f.Add("tls: {cert: a, key: b}\ngifts: [{id: a, name: b, price: 1}]\n")
	f.Add("a: &a [*a]\n")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Load([]string{"-config", write(t, text)}, nil, nil)
		if err == nil {
			if faults := c.Validate(); len(faults) != 0 {
				t.Fatalf("accepted with faults: %v", faults)
			}
		}
	})
}

func write(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "liveroom.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestPasswordsInURLsAreNotShown(t *testing.T) {
	for in, want := range map[string]string{
		"dial nats://u:hidden@a:4222: refused":             "dial nats://…@a:4222: refused",
		`parse "redis://:hid/den#@x@r:6379": invalid port`: `parse "redis://…@r:6379": invalid port`,
		"https://id.test/keys told to ask a@b.test":        "https://id.test/keys told to ask a@b.test",
	} {
		if got := Redact(in); got != want {
			t.Errorf("%q became %q", in, got)
		}
	}
}

func TestOriginsAreAsBrowsersWriteThem(t *testing.T) {
	c := Config{PublicURL: "https://Live.test:443/", Origins: []string{"http://shop.test:80", "https://shop.test:8443"}}
	if got, want := c.AllowedOrigins(), []string{"https://live.test", "http://shop.test", "https://shop.test:8443"}; !reflect.DeepEqual(got, want) {
		t.Errorf("%q", got)
	}
	if got := (Config{}).AllowedOrigins(); got != nil {
		t.Errorf("without any: %q", got)
	}
}
