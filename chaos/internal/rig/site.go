package rig

import (
	"context"
	"fmt"
	"os"
	"sync"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"github.com/weirworks/weir/internal/redistest"
)

// host is what servers and proxies take for the test that they belong to.
type host struct {
	dir string

	mu       sync.Mutex
	dirs     int
	problems []string
	cleanups []func()
}

// Helper implements redistest.TB.
func (*host) Helper() {}

// TempDir implements redistest.TB.
func (h *host) TempDir() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.dirs++
	dir := fmt.Sprintf("%s/redis-%d", h.dir, h.dirs)
	if err := os.Mkdir(dir, 0o700); err != nil {
		h.problems = append(h.problems, err.Error())
	}
	return dir
}

// Cleanup implements redistest.TB.
func (h *host) Cleanup(fn func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cleanups = append(h.cleanups, fn)
}

// Errorf implements redistest.TB.
func (h *host) Errorf(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.problems = append(h.problems, fmt.Sprintf(format, args...))
}

// try calls fn and returns as an error what it told Fatal.
func (h *host) try(fn func()) (err error) {
	defer func() {
		switch v := recover().(type) {
		case nil:
		case hostFailed:
			err = v
		default:
			panic(v) //nolint:forbidigo // it is not ours
		}
	}()
	fn()
	return nil
}

// hostFailed is what Fatal panics with, for try.
type hostFailed struct{ error }

// Fatal implements redistest.TB.
func (h *host) Fatal(args ...any) { h.Fatalf("%s", fmt.Sprint(args...)) }

// Fatalf implements redistest.TB.
func (h *host) Fatalf(format string, args ...any) {
	panic(hostFailed{fmt.Errorf(format, args...)}) //nolint:forbidigo // it may not return; try recovers
}

func (h *host) close() {
	for i := len(h.cleanups) - 1; i >= 0; i-- {
		h.cleanups[i]()
	}
}

// site is where the processes work: a Redis, in front of it a proxy that loses replies, and in
// front of that a troublesome network for each process.
type site struct {
	host   *host
	fsync  string
	redis  *redistest.Server
	drop   *redistest.Proxy
	toxics *toxiproxy.ApiServer
	lines  []*line // one for each slot
	links  int     // to replicas

	cluster *redistest.Cluster // instead of all that, as its clients go past proxies; or nil
}

// How a Redis keeps its data. With everysec it holds back what it has to write while it syncs, and
// loses that when it is killed: so where nothing may be lost it is always.
const (
	always   = "always"
	everySec = "everysec"
)

func persistence(fsync string) []string {
	rewrite := "0" // whose end is cut off by the harness, it has to know
	if fsync == always {
		rewrite = "20" // else each restart takes longer than the one before
	}
	return []string{
		"--appendonly", "yes", "--appendfsync", fsync, "--aof-load-truncated", "no", "--repl-diskless-sync-delay", "0",
		"--auto-aof-rewrite-percentage", rewrite, "--auto-aof-rewrite-min-size", "8mb",
	}
}

// newSite starts the servers; they end with close.
func newSite(dir string, slots int, fsync string) (s *site, err error) {
	s = &site{host: &host{dir: dir}, fsync: fsync}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if s.redis, err = s.server(); err != nil {
		return s, err
	}
	if err := s.host.try(func() { s.drop = redistest.StartProxy(s.host, s.redis.Addr()) }); err != nil {
		return s, err
	}
	zerolog.SetGlobalLevel(zerolog.Disabled) // toxics do not use the logger that they are given
	s.toxics = toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	for slot := range slots {
		l := &line{name: fmt.Sprintf("line-%d", slot), site: s, replaced: func() {}}
		if err := l.open(); err != nil {
			return s, err
		}
		s.host.Cleanup(l.close)
		s.lines = append(s.lines, l)
	}
	return s, nil
}

// newClusterSite starts a cluster, whose network is good.
func newClusterSite(dir string) (*site, error) {
	s := &site{host: &host{dir: dir}}
	err := s.host.try(func() { s.cluster = redistest.StartCluster(s.host) })
	if err != nil {
		s.close()
	}
	return s, err
}

// client returns a client past the troublesome network, which may be closed before the site is.
func (s *site) client() redis.UniversalClient {
	if s.cluster != nil {
		return s.cluster.Client(s.host)
	}
	return redis.NewClient(&redis.Options{Addr: s.drop.Addr()})
}

// server starts one more Redis.
func (s *site) server() (srv *redistest.Server, err error) {
	err = s.host.try(func() { srv = redistest.Start(s.host, persistence(s.fsync)...) })
	return srv, err
}

// restart kills a Redis, if it lives, and starts it as docs/reliability.md says.
func restart(s *redistest.Server) {
	s.Kill()
	s.Repair()
	s.Restart()
}

func (s *site) close() { s.host.close() }

// timeouts are those of all clients: short, so that many faults fit into the time.
const timeouts = "?dial_timeout=1s&read_timeout=2s&write_timeout=2s"

// direct is the URL past the troublesome network: replies may get lost on it, too.
func (s *site) direct() string {
	if s.cluster != nil {
		return s.cluster.URL() + timeouts
	}
	return "redis://" + s.drop.Addr() + "/0" + timeouts
}

// url is that of the Redis as a slot sees it.
func (s *site) url(slot int) string {
	if s.cluster != nil {
		return s.direct()
	}
	return s.lines[slot].url()
}

// onReplaced sets what is called when those in a slot have to go to another address.
func (s *site) onReplaced(slot int, fn func()) {
	if s.cluster == nil {
		s.lines[slot].replaced = fn
	}
}

// toxic is a trouble of the network.
type toxic struct{ name, json string }

// toxics are the troubles: late, cut, silent in one direction or the other, slow.
var toxics = []toxic{
	{"latency", `{"name":"x","type":"latency","stream":"downstream","attributes":{"latency":150,"jitter":120}}`},
	{"latency_up", `{"name":"x","type":"latency","stream":"upstream","attributes":{"latency":150,"jitter":120}}`},
	{"reset", `{"name":"x","type":"reset_peer","stream":"downstream","attributes":{"timeout":20}}`},
	{"silent", `{"name":"x","type":"timeout","stream":"downstream","attributes":{"timeout":0}}`},
	{"silent_up", `{"name":"x","type":"timeout","stream":"upstream","attributes":{"timeout":0}}`},
	{"bandwidth", `{"name":"x","type":"bandwidth","stream":"downstream","attributes":{"rate":8}}`},
}

// calm ends all troubles.
func (s *site) calm(ctx context.Context) {
	if s.drop != nil {
		s.drop.DropReplies(0, "")
	}
	for _, l := range s.lines {
		l.calm(ctx)
	}
}
