package redistest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"time"
)

const (
	startTimeout = 30 * time.Second
	pollInterval = 5 * time.Millisecond
)

var (
	errNotFound  = errors.New("redis-server not found on PATH: `make test` installs it, or: apt-get install redis-server")
	errPortTaken = errors.New("port taken")
)

// process is one run of redis-server; a Server has a new one per restart.
type process struct {
	cmd    *exec.Cmd
	log    string        // path of the file that receives its output
	exited chan struct{} // closed when the process has been reaped
}

// startProcess runs redis-server in dir and returns once it answers on port.
func startProcess(dir string, port int, args []string) (*process, error) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, errNotFound
	}
	p := &process{
		cmd:    exec.Command(path, args...),
		log:    filepath.Join(dir, "redis.log"),
		exited: make(chan struct{}),
	}
	out, err := os.Create(p.log)
	if err != nil {
		return nil, fmt.Errorf("creating server log: %w", err)
	}
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = dir, out, out
	p.cmd.SysProcAttr = dieWithParent()

	started := make(chan error, 1)
	go func() {
		// The parent-death signal follows the creating thread, not the
		// process, so that thread is held until the child is gone.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.exited)
		defer out.Close()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // killed on purpose: the status says nothing
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting redis-server: %w", err)
	}
	if err := p.waitReady(port); err != nil {
		p.kill()
		return nil, err
	}
	return p, nil
}

// waitReady waits for the server's own log to say that it listens, because a
// PING alone might be answered by another program that owns the port.
func (p *process) waitReady(port int) error {
	deadline := time.Now().Add(startTimeout)
	for {
		log, err := os.ReadFile(p.log)
		if err != nil {
			return fmt.Errorf("reading server log: %w", err)
		}
		if bytes.Contains(log, []byte("Ready to accept connections")) && ping(port) == nil {
			return nil
		}
		select {
		case <-p.exited:
			return p.explainExit()
		case <-time.After(pollInterval):
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("redis-server not ready after %v:\n%s", startTimeout, log)
		}
	}
}

func (p *process) explainExit() error {
	log, err := os.ReadFile(p.log)
	if err != nil {
		return fmt.Errorf("reading server log: %w", err)
	}
	if bytes.Contains(log, []byte("Address already in use")) {
		return errPortTaken
	}
	return fmt.Errorf("redis-server exited at start:\n%s", log)
}

// kill ends the process with SIGKILL, also when it is stopped or already gone.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.exited
}

// ping speaks the protocol by hand: a server that wants a password is ready too.
func ping(port int) error {
	conn, err := net.DialTimeout("tcp", address(port), time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return err
	}
	reply := make([]byte, 5)
	if _, err := io.ReadFull(conn, reply); err != nil {
		return err
	}
	if s := string(reply); s != "+PONG" && s != "-NOAU" {
		return fmt.Errorf("unexpected reply to PING: %q", s)
	}
	return nil
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// freePort returns a port below the ephemeral range (32768 and up on Linux).
// From inside the range a client redialing a killed server could be given the
// server's own port: it would connect to itself and block the restart.
func freePort() (int, error) {
	for range 100 {
		port := 10000 + rand.IntN(22000)
		l, err := net.Listen("tcp", address(port))
		if err != nil {
			continue
		}
		return port, l.Close()
	}
	return 0, errors.New("no free port found")
}
