package redisconn

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strings"

	"github.com/weirworks/weir/job"
)

// tlsFiles are the files that a URL names for TLS.
type tlsFiles struct {
	ca        string // who is believed, instead of whom the system believes
	cert, key string // with which the client shows who it is
}

// Parameters of a URL that name files for TLS.
const (
	CAFile  = "tls_ca_file"
	tlsCert = "tls_cert_file"
	tlsKey  = "tls_key_file"
)

// takeTLSFiles takes the parameters that name files out of a query.
func takeTLSFiles(q url.Values, scheme string) (tlsFiles, error) {
	for _, name := range []string{CAFile, tlsCert, tlsKey} {
		switch {
		case !q.Has(name):
		case !strings.HasPrefix(scheme, "rediss"):
			return tlsFiles{}, fmt.Errorf("parameter %s is for TLS; write rediss", name)
		case q.Get(name) == "":
			return tlsFiles{}, fmt.Errorf("parameter %s names no file", name)
		}
	}
	f := tlsFiles{ca: q.Get(CAFile), cert: q.Get(tlsCert), key: q.Get(tlsKey)}
	if (f.cert == "") != (f.key == "") {
		return tlsFiles{}, fmt.Errorf("parameters %s and %s belong together", tlsCert, tlsKey)
	}
	if f.ca != "" && q.Get("skip_verify") != "" {
		return tlsFiles{}, fmt.Errorf("parameter %s is of no use with skip_verify", CAFile)
	}
	for _, name := range []string{CAFile, tlsCert, tlsKey} {
		q.Del(name)
	}
	return f, nil
}

// urlEachItsName makes TLS check each server's certificate against the server's own
// address: go-redis would check all of them against the first host of the URL.
func urlEachItsName(c *tls.Config) {
	if c != nil {
		c.ServerName, c.MinVersion = "", tls.VersionTLS12
	}
}

// TLS returns the settings of a target's connections, nil for plain ones.
func (t *Target) TLS() *tls.Config {
	switch {
	case t.cluster != nil:
		return t.cluster.TLSConfig
	case t.failover != nil:
		return t.failover.TLSConfig
	default:
		return t.single.TLSConfig
	}
}

// ReadFiles reads the files that the URL names. The client's certificate is read anew
// for each connection, so that one that is renewed in time needs no restart.
func (t *Target) ReadFiles() error {
	c := t.TLS()
	if t.files.ca != "" {
		text, err := os.ReadFile(t.files.ca)
		if err != nil {
			return fmt.Errorf("%w: Redis URL %s: reading %s: %w", job.ErrConfig, t, CAFile, err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(text) {
			return fmt.Errorf("%w: Redis URL %s: %s %s holds no certificate in PEM form", job.ErrConfig, t, CAFile, t.files.ca)
		}
	}
	if t.files.cert == "" {
		return nil
	}
	load := func() (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(t.files.cert, t.files.key)
		if err != nil {
			return nil, fmt.Errorf("reading %s and %s: %w", tlsCert, tlsKey, err)
		}
		return &pair, nil
	}
	if _, err := load(); err != nil {
		return fmt.Errorf("%w: Redis URL %s: %w", job.ErrConfig, t, err)
	}
	c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return load() }
	return nil
}

// Distrust says what to do about an error of a TLS handshake, nil if it is another.
func Distrust(err error, where string) error {
	switch {
	case errors.As(err, new(*tls.CertificateVerificationError)):
		return fmt.Errorf("%w: Redis at %s shows a certificate that is not believed: %w; name who signed it with ?%s=PATH", job.ErrConfig, where, err, CAFile)
	case strings.Contains(err.Error(), "remote error: tls: "):
		return fmt.Errorf("%w: Redis at %s refuses the TLS handshake: %w; if it asks for a certificate, give ?%s=PATH&%s=PATH", job.ErrConfig, where, err, tlsCert, tlsKey)
	}
	return nil
}

// Exposed returns the hosts of the URL that plain connections reach over a network.
func (t *Target) Exposed() []string {
	if t.TLS() != nil {
		return nil
	}
	var addrs, hosts []string
	switch {
	case t.cluster != nil:
		addrs = t.cluster.Addrs
	case t.failover != nil:
		addrs = t.failover.SentinelAddrs
	case t.single.Network != "unix":
		addrs = []string{t.single.Addr}
	}
	for _, addr := range addrs {
		host, _, err := net.SplitHostPort(addr)
		ip, ipErr := netip.ParseAddr(host)
		if err == nil && host != "localhost" && (ipErr != nil || !ip.Unmap().IsLoopback()) {
			hosts = append(hosts, host)
		}
	}
	return hosts
}
