package redistest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// Authority signs certificates for one test.
type Authority struct {
	t    testing.TB
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	CA   string // path of its own certificate
}

// NewAuthority returns an authority that nobody else believes.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{t: t, dir: t.TempDir(), key: newKey(t)}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "weir tests"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a.CA = a.sign("ca", template, template, a.key)
	return a
}

// Issue returns the paths of a certificate for hosts, good for an hour from some time on,
// and of its key.
func (a *Authority) Issue(name string, from time.Time, hosts ...string) (cert, key string) {
	a.t.Helper()
	k := newKey(a.t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: from, NotAfter: from.Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, h)
		}
	}
	raw, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		a.t.Fatal(err)
	}
	return a.sign(name, template, a.cert, k), a.write(name+".key", "EC PRIVATE KEY", raw)
}

func (a *Authority) sign(name string, template, parent *x509.Certificate, key *ecdsa.PrivateKey) string {
	a.t.Helper()
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	if template == parent {
		if a.cert, err = x509.ParseCertificate(raw); err != nil {
			a.t.Fatal(err)
		}
	}
	return a.write(name+".crt", "CERTIFICATE", raw)
}

func (a *Authority) write(file, kind string, raw []byte) string {
	a.t.Helper()
	path := filepath.Join(a.dir, file)
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: raw}), 0o600); err != nil {
		a.t.Fatal(err)
	}
	return path
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// StartTLS is Start with a port for TLS besides, whose address it returns. The server has
// the certificate given, and asks clients for one that the authority signed if
// clients says so.
func StartTLS(t testing.TB, a *Authority, cert, key string, clients bool) (s *Server, addr string) {
	t.Helper()
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	ask := "no"
	if clients {
		ask = "yes"
	}
	s = Start(t, "--appendonly", "yes", "--aof-load-truncated", "no", "--tls-port", strconv.Itoa(port), "--tls-cert-file", cert, "--tls-key-file", key,
		"--tls-ca-cert-file", a.CA, "--tls-auth-clients", ask)
	return s, address(port)
}
