package redisstore_test

import (
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
)

// params are those of a URL.
func params(pairs ...string) string {
	q := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		q.Set(pairs[i], pairs[i+1])
	}
	return "?" + q.Encode()
}

// Over TLS, with a client's certificate, jobs run: the store, its engine and asynq use the
// same connections.
func TestTLS(t *testing.T) {
	t.Parallel()
	a := redistest.NewAuthority(t)
	cert, key := a.Issue("server", time.Now(), "127.0.0.1")
	mine, mineKey := a.Issue("client", time.Now())
	s, addr := redistest.StartTLS(t, a, cert, key, true)
	known := params("tls_ca_file", a.CA, "tls_cert_file", mine, "tls_key_file", mineKey)
	secure := "rediss://" + addr + known
	ns := redistest.Namespace(t)
	e := openTLS(t, s, secure, ns)
	serve(e)
	found := look(t, redisstore.Config{URL: secure, Namespace: ns}, false)
	found.has(t, "encryption", redisstore.OK, "encrypted, and certificates are checked", "")
	found.has(t, "connection", redisstore.OK, "^Redis at rediss://"+addr+" answers$", "")
}

// openTLS opens a namespace over TLS; the test looks behind it over the plain port.
func openTLS(t *testing.T, s *redistest.Server, secure, ns string) *env {
	t.Helper()
	store := enginetest.Open(t, redisstore.Config{URL: secure, Namespace: ns, Shards: shards})
	return &env{Env: enginetest.Env{T: t, URL: secure, Namespace: ns, Store: store, Redis: s.Client(t)}, store: store, lose: func() {}}
}

// Nobody is believed without a reason, and each refusal says what to do.
func TestTLSRefused(t *testing.T) {
	t.Parallel()
	a, other := redistest.NewAuthority(t), redistest.NewAuthority(t)
	cert, key := a.Issue("server", time.Now(), "127.0.0.1")
	wrongCert, wrongKey := a.Issue("wrong", time.Now(), "redis.example.com")
	oldCert, oldKey := a.Issue("old", time.Now().Add(-2*time.Hour), "127.0.0.1")
	foreign, foreignKey := other.Issue("client", time.Now())
	s, addr := redistest.StartTLS(t, a, cert, key, false)
	_, strict := redistest.StartTLS(t, a, cert, key, true)
	_, wrong := redistest.StartTLS(t, a, wrongCert, wrongKey, false)
	_, old := redistest.StartTLS(t, a, oldCert, oldKey, false)
	empty := filepath.Join(t.TempDir(), "empty.crt")
	if err := os.WriteFile(empty, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	ca := params("tls_ca_file", a.CA)
	for _, c := range []struct{ url, want string }{
		{"rediss://" + addr, "signed by unknown authority.*tls_ca_file"},
		{"rediss://" + addr + params("tls_ca_file", other.CA), "signed by unknown authority"},
		{"rediss://" + wrong + ca, "not 127.0.0.1|valid for|doesn't contain"},
		{"rediss://" + old + ca, "expired"},
		{"rediss://" + strict + ca, "tls_cert_file=PATH"},
		{"rediss://" + strict + params("tls_ca_file", a.CA, "tls_cert_file", foreign, "tls_key_file", foreignKey), "refuses the TLS handshake"},
		{"rediss://" + addr + params("tls_ca_file", "/nowhere"), "reading tls_ca_file: open /nowhere"},
		{"rediss://" + addr + params("tls_ca_file", empty), "holds no certificate"},
		{"rediss://" + addr + params("tls_cert_file", "/nowhere", "tls_key_file", "/nowhere"), "reading tls_cert_file and tls_key_file: open /nowhere"},
		{"rediss://" + addr + params("tls_cert_file", cert, "tls_key_file", foreignKey), "does not match"},
		{"rediss://" + addr + params("tls_cert_file", cert), "belong together"},
		{"rediss://" + addr + params("tls_ca_file", a.CA, "skip_verify", "true"), "of no use"},
		{"rediss://" + addr + "?tls_ca_file=", "names no file"},
		{"redis://" + s.Addr() + ca, "tls_ca_file is for TLS; write rediss"},
		{"redis://" + s.Addr() + "?skip_verify=true", "unknown parameter skip_verify"},
		{"rediss+cluster://" + addr, "signed by unknown authority"},
	} {
		_, err := redisstore.Open(t.Context(), redisstore.Config{URL: c.url})
		if !errors.Is(err, job.ErrConfig) || !matches(c.want, err.Error()) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %s", c.url, err, c.want)
		}
	}
	insecure := "rediss://" + wrong + "?skip_verify=true"
	openTLS(t, s, insecure, redistest.Namespace(t)).single()
	look(t, redisstore.Config{URL: insecure}, false).has(t, "encryption", redisstore.Warning, "skip_verify", "tls_ca_file=PATH")
}

// A client's certificate that is renewed is used by the next connection.
func TestTLSRenewed(t *testing.T) {
	t.Parallel()
	a := redistest.NewAuthority(t)
	cert, key := a.Issue("server", time.Now(), "localhost", "127.0.0.1")
	mine, mineKey := a.Issue("client", time.Now())
	s, addr := redistest.StartTLS(t, a, cert, key, true)
	e := openTLS(t, s, "rediss://"+addr+params("tls_ca_file", a.CA, "tls_cert_file", mine, "tls_key_file", mineKey), redistest.Namespace(t))
	a.Issue("client", time.Now().Add(-2*time.Hour)) // the same files: no longer good
	e.Check(s.Client(t).ClientKillByFilter(t.Context(), "TYPE", "normal", "SKIPME", "yes").Err())
	if _, err := e.store.Info(t.Context(), newID(t)); !errors.Is(err, job.ErrConfig) {
		t.Errorf("with a certificate that is over: %v", err)
	}
	a.Issue("client", time.Now())
	e.single()
}

// What goes over a network in plain is told.
func TestExamineEncryption(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]redisstore.Level{
		"redis://127.0.0.1:1":                      redisstore.OK,
		"redis://127.8.8.8:1":                      redisstore.OK,
		"redis://[::1]:1":                          redisstore.OK,
		"redis://[::ffff:127.0.0.1]:1":             redisstore.OK,
		"redis://localhost:1":                      redisstore.OK,
		"unix:///nowhere":                          redisstore.OK,
		"rediss://redis.example.com":               redisstore.OK,
		"redis://10.0.0.1:1":                       redisstore.Warning,
		"redis://redis.example.com":                redisstore.Warning,
		"redis://localhost.example.com":            redisstore.Warning,
		"redis+cluster://127.0.0.1:1,10.0.0.1:1":   redisstore.Warning,
		"redis+sentinel://10.0.0.1/main":           redisstore.Warning,
		"rediss+sentinel://10.0.0.1/main":          redisstore.OK,
		"rediss://redis.example.com?skip_verify=1": redisstore.Warning,
	} {
		if got := redisstore.EncryptionOf(t, raw); got.Level != want || got.Check != "encryption" {
			t.Errorf("%s: %+v, want %s", raw, got, want)
		}
	}
}
