package fanout

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
)

// authority signs certificates for one test.
type authority struct {
	t     *testing.T
	cert  *x509.Certificate
	key   *ecdsa.PrivateKey
	roots *x509.CertPool
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t, roots: x509.NewCertPool()}
	own := a.sign(&x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign,
	})
	a.cert, a.key = own.Leaf, own.PrivateKey.(*ecdsa.PrivateKey)
	a.roots.AddCert(a.cert)
	return a
}

func (a *authority) sign(template *x509.Certificate) tls.Certificate {
	a.t.Helper()
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// of issues a certificate for both ends of a connection on this machine.
func (a *authority) of(name string) tls.Certificate {
	return a.sign(&x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
}

// operator makes what a server trusts and the credentials file of a user of an account with JetStream.
func operator(t *testing.T) (change func(*server.Options), creds string) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	pair := func(create func() (nkeys.KeyPair, error)) (nkeys.KeyPair, string) {
		kp, err := create()
		must(err)
		public, err := kp.PublicKey()
		must(err)
		return kp, public
	}
	op, opKey := pair(nkeys.CreateOperator)
	_, sysKey := pair(nkeys.CreateAccount)
	acc, accKey := pair(nkeys.CreateAccount)
	user, userKey := pair(nkeys.CreateUser)
	encode := func(c jwt.Claims, by nkeys.KeyPair) string {
		text, err := c.Encode(by)
		must(err)
		return text
	}
	sysJWT := encode(jwt.NewAccountClaims(sysKey), op)
	claims := jwt.NewAccountClaims(accKey)
	claims.Limits.JetStreamLimits = jwt.JetStreamLimits{MemoryStorage: jwt.NoLimit, DiskStorage: jwt.NoLimit, Streams: jwt.NoLimit, Consumer: jwt.NoLimit}
	accJWT := encode(claims, op)
	userClaims := jwt.NewUserClaims(userKey)
	userClaims.IssuerAccount = accKey
	userJWT := encode(userClaims, acc)
	seed, err := user.Seed()
	must(err)
	body, err := jwt.FormatUserConfig(userJWT, seed)
	must(err)
	creds = filepath.Join(t.TempDir(), "user.creds")
	must(os.WriteFile(creds, body, 0o600))
	opClaims := jwt.NewOperatorClaims(opKey)
	opClaims.SystemAccount = sysKey
	opJWT, err := jwt.DecodeOperatorClaims(encode(opClaims, op))
	must(err)
	return func(o *server.Options) {
		resolver := &server.MemAccResolver{}
		must(resolver.Store(sysKey, sysJWT))
		must(resolver.Store(accKey, accJWT))
		o.TrustedOperators, o.SystemAccount, o.AccountResolver = []*jwt.OperatorClaims{opJWT}, sysKey, resolver
	}, creds
}

// A server that proves itself, wants a certificate of the node, and credentials as operators hand them out.
func TestServerWithTLSAndCredentials(t *testing.T) {
	t.Parallel()
	trust, creds := operator(t)
	a := newAuthority(t)
	s := natsServerWith(t, func(o *server.Options) {
		trust(o)
		o.TLS, o.TLSVerify, o.TLSTimeout = true, true, wait.Seconds()
		o.TLSConfig = &tls.Config{
			MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{a.of("server")},
			ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: a.roots,
		}
	})
	client := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: a.roots, Certificates: []tls.Certificate{a.of("node")}}
	url := "tls://" + s.Addr().String()
	good := Config{NodeID: "n1", URLs: []string{url}, Credentials: creds, TLS: client}
	f := open(t, good)
	l, _ := subscribe(t, f, "demo")
	if r := storeGift(t, f, "demo", "u", "c", "rose"); receive(t, l.gifts).Seq != r.Seq {
		t.Error("another gift")
	}
	if err := f.Health(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*Config){
		"no credentials":    func(c *Config) { c.Credentials = "" },
		"no certificate":    func(c *Config) { c.TLS = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: a.roots} },
		"unknown authority": func(c *Config) { c.TLS = nil },
	} {
		c := good
		change(&c)
		if f, err := Open(testContext(t), c, testLog(t)); err == nil {
			closeNow(t, f)
			t.Errorf("%s: opened", name)
		} else {
			t.Logf("%s: %v", name, err)
		}
	}
}

// A password in a URL opens the server and is said nowhere, neither in errors nor in the log.
func TestPasswordInTheURL(t *testing.T) {
	t.Parallel()
	s := natsServerWith(t, func(o *server.Options) { o.Username, o.Password = "liveroom", "hunter2" })
	var out syncBuffer
	log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
	at := func(password string) Config {
		return Config{NodeID: "n1", URLs: []string{"nats://liveroom:" + password + "@" + s.Addr().String()}}
	}
	f, err := Open(testContext(t), at("hunter2"), log)
	if err != nil {
		t.Fatal(err)
	}
	defer closeNow(t, f)
	storeGift(t, f, "demo", "u", "c", "rose")
	for name, c := range map[string]Config{
		"wrong password": at("hunter3"),
		"nobody there":   {NodeID: "n1", URLs: []string{"nats://liveroom:hunter2@127.0.0.1:1"}},
		"no address":     {NodeID: "n1", URLs: []string{"nats://liveroom:hunter2@host.invalid:1"}},
	} {
		f, err := Open(testContext(t), c, log)
		if err == nil {
			closeNow(t, f)
			t.Errorf("%s: opened", name)
			continue
		}
		if strings.Contains(err.Error(), "hunter") {
			t.Errorf("%s: %v", name, err)
		}
	}
	stopNats(s)
	eventually(t, "the loss is noticed", func() bool { return f.Health() != nil })
	if strings.Contains(out.String(), "hunter") {
		t.Error(out.String())
	}
}

// syncBuffer is a buffer for a log that several goroutines write.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
