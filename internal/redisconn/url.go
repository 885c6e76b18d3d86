package redisconn

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/job"
)

// Target is a Redis that a URL names. Exactly one of the three options is set.
type Target struct {
	full   string // the URL in its canonical form, with password
	masked string // the same without password and parameters

	single   *redis.Options
	failover *redis.FailoverOptions
	cluster  *redis.ClusterOptions

	files tlsFiles // not read yet
}

// Client returns a new client, which the caller must close. It does not connect yet.
func (t *Target) Client() redis.UniversalClient {
	// Copies, because go-redis writes its defaults into what it is given.
	switch {
	case t.cluster != nil:
		o := *t.cluster
		return redis.NewClusterClient(&o)
	case t.failover != nil:
		o := *t.failover
		return redis.NewFailoverClient(&o)
	default:
		o := *t.single
		return redis.NewClient(&o)
	}
}

// String returns the URL for messages: the password is masked, parameters are left out.
func (t *Target) String() string { return t.masked }

// Commands are those that a connection to this kind of Redis needs besides what its jobs do, as rules of an ACL.
func (t *Target) Commands() []string {
	switch {
	case t.cluster != nil:
		return []string{"+cluster|slots", "+cluster|info", "+cluster|nodes", "+command"}
	case t.failover != nil && t.failover.DB != 0, t.single != nil && t.single.DB != 0:
		return []string{"+select"}
	}
	return nil
}

// Parse reads the URL of a Redis:
//
//	redis://[user:password@]host[:port][/db]    rediss:// for TLS
//	unix://[user:password@]/path/to.sock[?db=N]
//	redis+sentinel://[user:password@]host[:port],.../master[/db]
//	redis+cluster://[user:password@]host[:port],...
//
// User and password are those of the Redis servers; those of Sentinels, if they have
// any, are the parameters sentinel_username and sentinel_password. The other parameters
// are those of go-redis (dial_timeout=5s, max_retries=3, pool_size=20, ...), except the
// ones that would read from replicas: what they say may be out of date.
//
// With TLS every server of a cluster or behind Sentinels must have a certificate for the
// address by which it is dialed. tls_ca_file names a file of certificates of those who are
// believed instead of whom the system believes; tls_cert_file and tls_key_file the client's
// own certificate and its key. Only skip_verify=true accepts any certificate. The files are
// read when a store is opened.
//
// The error wraps job.ErrConfig and never tells a password.
func Parse(raw string) (*Target, error) {
	p, err := urlSplit(raw)
	var t *Target
	if err == nil {
		t, err = p.target()
	}
	if err != nil {
		example := p.scheme.example
		if example == "" {
			example = urlSchemes[0].example
		}
		return nil, fmt.Errorf("%w: Redis URL %.200q: %w (a right one: %s)", job.ErrConfig, urlMask(raw), err, example)
	}
	return t, nil
}

type urlKind int

const (
	urlSingle urlKind = iota
	urlUnix
	urlSentinel
	urlCluster
)

// urlScheme is a scheme and what go-redis calls it.
type urlScheme struct {
	name    string
	kind    urlKind
	base    string
	port    string // default
	example string
}

var urlSchemes = []urlScheme{
	{"redis", urlSingle, "redis", "6379", "redis://user:password@host:6379/0"},
	{"rediss", urlSingle, "rediss", "6379", "rediss://user:password@host:6379/0"},
	{"unix", urlUnix, "unix", "", "unix:///path/to/redis.sock?db=0"},
	{"redis+sentinel", urlSentinel, "redis", "26379", "redis+sentinel://user:password@host1:26379,host2:26379/mastername/0"},
	{"rediss+sentinel", urlSentinel, "rediss", "26379", "rediss+sentinel://user:password@host1:26379,host2:26379/mastername/0"},
	{"redis+cluster", urlCluster, "redis", "6379", "redis+cluster://user:password@host1:6379,host2:6379"},
	{"rediss+cluster", urlCluster, "rediss", "6379", "rediss+cluster://user:password@host1:6379,host2:6379"},
}

// urlAliases are schemes that people write for ours and that do not look like them.
var urlAliases = map[string]string{
	"http": "redis", "tcp": "redis", "valkey": "redis",
	"https": "rediss", "tls": "rediss", "ssl": "rediss", "valkeys": "rediss",
	"file": "unix", "redis+socket": "unix",
	"sentinel": "redis+sentinel", "cluster": "redis+cluster",
}

// urlRefused are parameters of go-redis that a URL must not have: the URL says it in
// another place, or the store needs it otherwise, or it would read from replicas.
var urlRefused = map[string]string{
	"addr":                       "name all hosts before the path: host1:port,host2:port",
	"master_name":                "the master's name is the path",
	"username":                   "user and password belong before the host; those of Sentinels are sentinel_username and sentinel_password",
	"password":                   "user and password belong before the host; those of Sentinels are sentinel_username and sentinel_password",
	"context_timeout_enabled":    "it is always on",
	"read_only":                  "replicas may be out of date",
	"replica_only":               "replicas may be out of date",
	"use_disconnected_replicas":  "replicas may be out of date",
	"route_by_latency":           "replicas may be out of date",
	"route_by_latency_tolerance": "replicas may be out of date",
	"route_randomly":             "replicas may be out of date",
}

// urlPools are parameters with which go-redis panics when they are out of range.
var urlPools = map[string]int{ // name -> least value
	"pool_size": 0, "min_idle_conns": 0, "max_idle_conns": 0, "max_active_conns": 0,
	"max_concurrent_dials": 0, "pipeline_pool_size": -1,
}

var (
	urlSchemeRE   = regexp.MustCompile(`^[a-z][a-z0-9+.-]{0,19}$`)
	urlHostRE     = regexp.MustCompile(`^[A-Za-z0-9._-]+$`) // names, IPv4, and Sentinel's master names
	urlHostPortRE = regexp.MustCompile(`^[A-Za-z0-9._-]+:[0-9]{1,5}(/[0-9]*)?$`)
	urlParamRE    = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,39}$`)
)

// urlParts is a URL taken apart. All texts are unescaped. net/url does not do this: it
// knows no lists of hosts, and its errors quote the URL.
type urlParts struct {
	scheme urlScheme
	user   *url.Userinfo
	hosts  []string // host:port
	path   string   // of the socket; for Sentinel the name of the master
	db     int
	query  url.Values
}

// urlSplit takes a URL apart. When it fails, scheme is what the text probably wants to be.
func urlSplit(raw string) (p urlParts, err error) {
	for _, r := range raw {
		if r <= ' ' || r == 0x7f {
			return p, errors.New("it has a space, a line break or a control character; write %20 for a space in a password")
		}
	}
	name, rest, ok := urlCutScheme(raw)
	if !ok {
		if urlHostPortRE.MatchString(raw) && urlMask(raw) == raw {
			return p, fmt.Errorf("the scheme is missing; write redis://%s", raw)
		}
		return p, errors.New("the scheme is missing; write redis://host:port")
	}
	if p.scheme, err = urlFindScheme(name); err != nil {
		return p, err
	}
	if strings.Contains(rest, "#") {
		return p, errors.New("it has a #; in a password write %23")
	}
	authority, path := rest, ""
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		authority, path = rest[:i], rest[i:]
	}
	path, query, _ := strings.Cut(path, "?")
	if strings.Contains(path+query, "@") {
		return p, errors.New("it has an @ after the host; in a password write / as %2F and ? as %3F, elsewhere @ as %40")
	}
	hosts := authority
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		hosts = authority[i+1:]
		if err := p.setUser(authority[:i]); err != nil {
			return p, err
		}
	}
	if err := p.setHosts(hosts); err != nil {
		return p, err
	}
	if path, err = url.PathUnescape(path); err != nil {
		return p, errors.New("in the path, a % without two hexadecimal digits; write %25")
	}
	db, err := p.setPath(path)
	if err != nil {
		return p, err
	}
	return p, p.setQuery(query, db)
}

// urlCutScheme tells whether the text has something of the form of a scheme.
func urlCutScheme(raw string) (name, rest string, ok bool) {
	name, rest, ok = strings.Cut(raw, "://")
	name = strings.ToLower(name)
	if !ok || !urlSchemeRE.MatchString(name) {
		return "", raw, false
	}
	return name, rest, true
}

// urlFindScheme finds a scheme. With its error comes the one that was probably meant.
func urlFindScheme(name string) (urlScheme, error) {
	var nearest urlScheme
	var names []string
	distance := 3
	for _, s := range urlSchemes {
		if s.name == name {
			return s, nil
		}
		names = append(names, s.name)
		d := urlDistance(name, s.name)
		if s.name == urlAliases[name] {
			d = 0
		}
		if d < distance {
			nearest, distance = s, d
		}
	}
	if nearest.name != "" {
		return nearest, fmt.Errorf("unknown scheme %q; did you mean %s://?", name, nearest.name)
	}
	return nearest, fmt.Errorf("unknown scheme %q; use one of %s", name, strings.Join(names, ", "))
}

// urlDistance counts the bytes to insert, delete or replace to get from a to b.
func urlDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}

func (p *urlParts) setUser(text string) error {
	if strings.Contains(text, "@") {
		return errors.New("it has several @ before the host; in a password write %40")
	}
	user, password, _ := strings.Cut(text, ":")
	user, err := url.PathUnescape(user)
	if err == nil {
		password, err = url.PathUnescape(password)
	}
	switch {
	case err != nil:
		return errors.New("in user or password, a % without two hexadecimal digits; write %25")
	case user != "" && password == "":
		// go-redis would log in as nobody.
		return errors.New("a user without a password; for a password without user write :password@host")
	case password != "":
		p.user = url.UserPassword(user, password)
	}
	return nil
}

func (p *urlParts) setHosts(text string) error {
	if p.scheme.kind == urlUnix {
		if text != "" {
			return errors.New("the path of a socket must be absolute: three slashes")
		}
		return nil
	}
	for h := range strings.SplitSeq(text, ",") {
		hostPort, err := urlHost(h, p.scheme.port)
		if err != nil {
			return err
		}
		p.hosts = append(p.hosts, hostPort)
	}
	if p.scheme.kind == urlSingle && len(p.hosts) > 1 {
		return fmt.Errorf("several hosts; write %s+cluster:// or %s+sentinel://", p.scheme.name, p.scheme.name)
	}
	return nil
}

// urlHost reads a name, an IPv4 address or an IPv6 address in brackets, with or without port.
func urlHost(text, port string) (string, error) {
	host, rest := text, ""
	if strings.HasPrefix(text, "[") {
		var ok bool
		host, rest, ok = strings.Cut(text[1:], "]")
		if ip, err := netip.ParseAddr(host); !ok || err != nil || !ip.Is6() || ip.Zone() != "" {
			return "", errors.New("in the brackets is no IPv6 address")
		}
	} else {
		if i := strings.IndexByte(text, ':'); i >= 0 {
			host, rest = text[:i], text[i:]
		}
		switch {
		case host == "":
			return "", errors.New("a host is missing")
		case !urlHostRE.MatchString(host):
			return "", errors.New("a host has characters that no host name has")
		}
	}
	if rest != "" {
		n, err := strconv.ParseUint(strings.TrimPrefix(rest, ":"), 10, 16)
		if rest[0] != ':' || err != nil || n == 0 {
			return "", errors.New("a port is not a number from 1 to 65535; or the @ between password and host is missing, or an IPv6 address has no brackets")
		}
		port = strconv.FormatUint(n, 10)
	}
	return net.JoinHostPort(host, port), nil
}

// setPath returns the part of the path that is the number of a database, maybe empty.
func (p *urlParts) setPath(path string) (db string, err error) {
	switch p.scheme.kind {
	case urlUnix:
		if path == "" || strings.HasSuffix(path, "/") {
			return "", errors.New("the path of the socket is missing")
		}
		if strings.ContainsRune(path, 0) {
			return "", errors.New("the path of the socket has a zero byte")
		}
		p.path = path
		return "", nil
	case urlSentinel:
		p.path, db, _ = strings.Cut(strings.TrimPrefix(path, "/"), "/")
		if !urlHostRE.MatchString(p.path) {
			return "", errors.New("the name of the master is missing or has other characters than letters, digits, '.', '-' and '_'")
		}
		return db, nil
	default:
		return strings.TrimPrefix(path, "/"), nil
	}
}

// setQuery takes the parameters that are not go-redis's out of the query.
func (p *urlParts) setQuery(text, db string) error {
	query, err := url.ParseQuery(text)
	if err != nil {
		return errors.New("the parameters cannot be read; write name=value&name=value, % as %25 and ; as %3B")
	}
	for name, values := range query {
		if err := urlCheckParam(name, values); err != nil {
			return err
		}
	}
	if value := query.Get("db"); value != "" {
		if db != "" {
			return errors.New("two database numbers, in the path and as parameter")
		}
		db = value
	}
	query.Del("db")
	if db != "" {
		n, err := strconv.ParseUint(db, 10, 31)
		if err != nil {
			return errors.New("the database is not a number")
		}
		p.db = int(n)
	}
	if p.scheme.kind == urlCluster && p.db != 0 {
		return errors.New("a cluster has only database 0")
	}
	p.query = query
	return nil
}

func urlCheckParam(name string, values []string) error {
	shown := urlParam(name)
	if why, refused := urlRefused[name]; refused {
		return fmt.Errorf("parameter %s is not possible: %s", shown, why)
	}
	if len(values) > 1 {
		return fmt.Errorf("parameter %s is there more than once", shown)
	}
	n, err := strconv.Atoi(values[0])
	if err != nil {
		return nil // a duration or text, or go-redis complains
	}
	least, most := -1, 1<<24
	if pool, ok := urlPools[name]; ok {
		least, most = pool, 1<<16
	}
	if name != "sentinel_password" && name != "sentinel_username" && (n < least || n > most) {
		return fmt.Errorf("parameter %s must be from %d to %d", shown, least, most)
	}
	return nil
}

// urlParam shows the name of a parameter, unless the text looks like anything else.
func urlParam(name string) string {
	if !urlParamRE.MatchString(name) {
		return "***"
	}
	return name
}

// target turns the parts into options, with go-redis's own parsers.
func (p urlParts) target() (*Target, error) {
	t := &Target{full: p.format(p.user, p.query), masked: p.format(nil, nil)}
	if p.user != nil {
		t.masked = strings.Replace(t.masked, "://", "://"+url.User(p.user.Username()).String()+":***@", 1)
	}
	u := url.URL{Scheme: p.scheme.base, User: p.user}
	q := url.Values{}
	for name, values := range p.query {
		q[name] = values
	}
	if len(p.hosts) > 0 {
		u.Host = p.hosts[0]
		q["addr"] = p.hosts[1:]
	}
	var err error
	if t.files, err = takeTLSFiles(q, p.scheme.name); err != nil {
		return nil, err
	}
	switch p.scheme.kind {
	case urlSentinel:
		err = t.setFailover(p, u, q)
	case urlCluster:
		err = t.setCluster(u, q)
	case urlUnix, urlSingle:
		if p.scheme.kind == urlUnix {
			u.Path = p.path
		}
		u.RawQuery = q.Encode()
		if t.single, err = redis.ParseURL(u.String()); err == nil {
			t.single.DB, t.single.ContextTimeoutEnabled = p.db, true
		}
	}
	if err != nil {
		return nil, urlReason(err)
	}
	return t, nil
}

func (t *Target) setFailover(p urlParts, u url.URL, q url.Values) (err error) {
	// In go-redis's form of such a URL, user and password are those of the Sentinels.
	u.User = nil
	if password := q.Get("sentinel_password"); password != "" {
		u.User = url.UserPassword(q.Get("sentinel_username"), password)
		q.Del("sentinel_username") // without a password it stays, and is refused as unknown
		q.Del("sentinel_password")
	}
	q.Set("master_name", p.path)
	if p.user != nil {
		password, _ := p.user.Password()
		q.Set("username", p.user.Username())
		q.Set("password", password)
	}
	u.RawQuery = q.Encode()
	if t.failover, err = redis.ParseFailoverURL(u.String()); err != nil {
		return err
	}
	t.failover.DB, t.failover.ContextTimeoutEnabled = p.db, true
	urlEachItsName(t.failover.TLSConfig)
	return nil
}

func (t *Target) setCluster(u url.URL, q url.Values) (err error) {
	// go-redis reads skip_verify everywhere but here.
	skip := false
	if u.Scheme == "rediss" && q.Has("skip_verify") {
		if skip, err = strconv.ParseBool(q.Get("skip_verify")); err != nil {
			return errors.New("invalid skip_verify boolean")
		}
		q.Del("skip_verify")
	}
	u.RawQuery = q.Encode()
	if t.cluster, err = redis.ParseClusterURL(u.String()); err != nil {
		return err
	}
	t.cluster.ContextTimeoutEnabled = true
	urlEachItsName(t.cluster.TLSConfig)
	if skip {
		t.cluster.TLSConfig.InsecureSkipVerify = true
	}
	return nil
}

// urlReason takes from an error of go-redis what cannot be a secret: never a value.
func urlReason(err error) error {
	head, tail, _ := strings.Cut(strings.TrimPrefix(err.Error(), "redis: "), ": ")
	if head != "unexpected option" {
		return errors.New(head)
	}
	names := strings.Split(tail, ", ")
	for i, name := range names {
		names[i] = urlParam(name)
	}
	return fmt.Errorf("unknown parameter %s", strings.Join(names, ", "))
}

// format writes the URL. Without user and parameters it is fit for messages.
func (p urlParts) format(user *url.Userinfo, params url.Values) string {
	var b strings.Builder
	b.WriteString(p.scheme.name + "://")
	if user != nil {
		b.WriteString(user.String() + "@")
	}
	b.WriteString(strings.Join(p.hosts, ","))
	q := url.Values{}
	for name, values := range params {
		q[name] = values
	}
	if p.path != "" {
		path := (&url.URL{Path: "/" + strings.TrimPrefix(p.path, "/")}).EscapedPath()
		b.WriteString(strings.ReplaceAll(path, "@", "%40"))
	}
	switch {
	case p.db == 0:
	case p.scheme.kind == urlUnix:
		q.Set("db", strconv.Itoa(p.db))
	default:
		b.WriteString("/" + strconv.Itoa(p.db))
	}
	if len(q) > 0 {
		b.WriteString("?" + q.Encode())
	}
	return b.String()
}
