package redistest

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const portAttempts = 10

// Server is a redis-server process owned by one test. Its methods may be called
// from any goroutine; failures are reported with t.Errorf.
type Server struct {
	t    testing.TB // nil for a shared instance, which is never handed out
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
func Start(t testing.TB, args ...string) *Server {
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

// Dir returns the directory of the server's data.
func (s *Server) Dir() string { return s.dir }
