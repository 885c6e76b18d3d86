package component

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"
)

// HTTPPolicy says which servers jobs may ask. The zero value allows all that have public
// addresses.
type HTTPPolicy struct {
	// AllowPrivate allows addresses that are not public too: of this machine, of private
	// networks, of a cloud's metadata service.
	AllowPrivate bool
	// Hosts, if there are any, are the only ones that may be asked, by redirects too: names
	// like "api.example.org", or ".example.org" for all below it. They need public
	// addresses anyway, unless AllowPrivate is set.
	Hosts []string
	// UseProxy sends requests through the proxy that the environment names. Then only the
	// address of the proxy is checked: keeping jobs from private networks is its task.
	UseProxy bool
}

// ErrForbidden is wrapped by errors about what the Policy does not allow.
var ErrForbidden = errors.New("not allowed by the policy")

// allows tells whether requests may go to a host, given without port.
func (p HTTPPolicy) allows(host string) error {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	ok := len(p.Hosts) == 0 || slices.ContainsFunc(p.Hosts, func(h string) bool {
		h = strings.ToLower(h)
		return h == host || strings.HasPrefix(h, ".") && strings.HasSuffix(host, h)
	})
	if !ok {
		return fmt.Errorf("%w: host %q is not in the list", ErrForbidden, host)
	}
	return nil
}

// control is called with the address of each connection, after names were resolved and
// before it is made: whatever a name means by then, this is where the request would go.
func (p HTTPPolicy) control(_, address string, _ syscall.RawConn) error {
	if p.AllowPrivate {
		return nil
	}
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrForbidden, err)
	}
	if !public(at.Addr()) {
		return fmt.Errorf("%w: %s is not a public address; whoever runs the engine may allow it, as --allow-private-http does", ErrForbidden, at.Addr())
	}
	return nil
}

// notPublic are addresses that IANA has set aside, within those that are global unicast.
var notPublic = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
	"192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24",
	"192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
	"224.0.0.0/4", "240.0.0.0/4",
	"2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20",
)

// unicast6 is all of IPv6 that is given to networks. Outside lie mapped and translated
// IPv4, this machine, and local networks.
var unicast6 = netip.MustParsePrefix("2000::/3")

func prefixes(texts ...string) []netip.Prefix {
	list := make([]netip.Prefix, len(texts))
	for i, t := range texts {
		list[i] = netip.MustParsePrefix(t)
	}
	return list
}

// public tells whether an address is one of the public Internet.
func public(a netip.Addr) bool {
	a = a.WithZone("").Unmap()
	if !a.IsValid() || a.Is6() && !unicast6.Contains(a) {
		return false
	}
	return !slices.ContainsFunc(notPublic, func(p netip.Prefix) bool { return p.Contains(a) })
}

// Client returns an HTTP client that keeps to the policy, for one run.
func (p HTTPPolicy) Client(redirects int) *http.Client {
	dialer := &net.Dialer{Timeout: 30 * time.Second, Control: p.control}
	t := &http.Transport{
		DialContext:            dialer.DialContext,
		ForceAttemptHTTP2:      true,
		TLSHandshakeTimeout:    10 * time.Second,
		IdleConnTimeout:        10 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
	}
	if p.UseProxy {
		t.Proxy = http.ProxyFromEnvironment
	}
	return &http.Client{Transport: guarded{p, t}, CheckRedirect: func(req *http.Request, via []*http.Request) error {
		if redirects == 0 {
			return http.ErrUseLastResponse
		}
		if len(via) > redirects {
			return fmt.Errorf("more than %d redirects", redirects)
		}
		if req.URL.Host != via[0].URL.Host || req.URL.Scheme != via[0].URL.Scheme {
			req.Header = http.Header{} // keys are for those to whom they were sent
		}
		return nil
	}}
}

// guarded checks the host of each request, those of redirects too.
type guarded struct {
	policy HTTPPolicy
	*http.Transport
}

// RoundTrip implements http.RoundTripper.
func (g guarded) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := g.policy.allows(req.URL.Hostname()); err != nil {
		return nil, err
	}
	return g.Transport.RoundTrip(req)
}

// timeout is the context of one request.
func timeout(ctx context.Context, d, otherwise time.Duration) (context.Context, context.CancelFunc) {
	if d == 0 {
		d = otherwise
	}
	return context.WithTimeoutCause(ctx, d, fmt.Errorf("no end after %s", d))
}
