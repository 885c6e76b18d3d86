package redistest

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const portAttempts = 10

// TB is what servers and proxies need of the test that starts them. Programs that test Weir
// from outside bring their own.
type TB interface {
	Helper()
	TempDir() string
	Cleanup(fn func())
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// Server is a redis-server process owned by one test. Its methods may be called
// from any goroutine; failures are reported with t.Errorf.
type Server struct {
	t    TB // nil for a shared instance, which is never handed out
	dir  string
	port int
	bus  int // cluster bus port; 0 outside a cluster
	args []string

	mu   sync.Mutex
	proc *process // the last one started; nil after Kill
}

// Start runs a redis-server on a free port of 127.0.0.1 and a directory of its
// own, without persistence unless args (redis-server flags) turn it on. The
// server is killed when the test ends.
func Start(t TB, args ...string) *Server {
	t.Helper()
	s, err := launch(t.TempDir(), false, args)
	if err != nil {
		t.Fatal(err)
	}
	s.t = t
	t.Cleanup(s.Kill)
	return s
}

// launch starts a server in dir, on another port as long as ports are taken.
func launch(dir string, cluster bool, extra []string) (*Server, error) {
	for range portAttempts {
		port, err := freePort()
		if err != nil {
			return nil, err
		}
		args := []string{
			"--bind", "127.0.0.1", "--port", strconv.Itoa(port), "--dir", dir,
			"--save", "", "--appendonly", "no", "--daemonize", "no",
		}
		bus := 0
		if cluster {
			if bus, err = freePort(); err != nil {
				return nil, err
			}
			args = append(args, "--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(bus),
				"--cluster-announce-ip", "127.0.0.1", "--cluster-announce-bus-port", strconv.Itoa(bus))
		}
		s := &Server{dir: dir, port: port, bus: bus, args: slices.Concat(args, extra)}
		s.proc, err = startProcess(dir, port, s.args)
		if errors.Is(err, errPortTaken) {
			continue
		}
		if err != nil {
			return nil, err
		}
		return s, nil
	}
	return nil, fmt.Errorf("starting redis-server: %d ports in a row were taken", portAttempts)
}

// Addr returns the server's host:port; a restart keeps it.
func (s *Server) Addr() string { return address(s.port) }

// URL returns the server's address as a redis:// URL of database 0.
func (s *Server) URL() string { return "redis://" + s.Addr() + "/0" }

// Dir returns the directory in which the server keeps its data.
func (s *Server) Dir() string { return s.dir }

// Kill ends the server with SIGKILL and waits until it is gone. Killing a
// killed server does nothing.
func (s *Server) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kill()
}

func (s *Server) kill() {
	if s.proc != nil {
		s.proc.kill()
		s.proc = nil
	}
}

// Restart kills the server if it runs and starts it on the same port and
// directory: what survives is what its persistence flags kept.
func (s *Server) Restart() {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kill()
	err := errPortTaken
	for range portAttempts {
		if s.proc, err = startProcess(s.dir, s.port, s.args); !errors.Is(err, errPortTaken) {
			break
		}
		time.Sleep(20 * pollInterval)
	}
	if err != nil {
		s.t.Errorf("restarting redis-server on %s: %v", s.Addr(), err)
	}
}

// Repair cuts off what a crash left of a transaction that was not written whole to the append-only
// file, as an operator does with redis-check-aof --fix. The server must be dead.
func (s *Server) Repair() {
	s.t.Helper()
	manifests, err := filepath.Glob(filepath.Join(s.dir, "appendonlydir", "*.manifest"))
	if err != nil || len(manifests) != 1 {
		s.t.Errorf("repairing the append-only file of redis-server on %s: found %d manifests: %v", s.Addr(), len(manifests), err)
		return
	}
	cmd := exec.Command("redis-check-aof", "--fix", manifests[0]) //nolint:gosec,noctx // of the PATH; it ends by itself
	cmd.Stdin = strings.NewReader("y\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Errorf("redis-check-aof --fix %s: %v\n%s", manifests[0], err, out)
	}
}

// Pause stops the process with SIGSTOP: connections stay open, nothing answers.
func (s *Server) Pause() { s.t.Helper(); s.signal(syscall.SIGSTOP) }

// Resume continues a paused server.
func (s *Server) Resume() { s.t.Helper(); s.signal(syscall.SIGCONT) }

func (s *Server) signal(sig syscall.Signal) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil {
		s.t.Errorf("signaling redis-server on %s: it is not running", s.Addr())
		return
	}
	if err := s.proc.cmd.Process.Signal(sig); err != nil {
		s.t.Errorf("signaling redis-server on %s: %v", s.Addr(), err)
	}
}

// Client returns a client of the server, closed when t ends.
func (s *Server) Client(t testing.TB) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: s.Addr()})
	t.Cleanup(func() { _ = c.Close() })
	return c
}
