// Package ownredis runs a redis-server of a program's own: on a free port, with its data in a directory that one program has at a time.
package ownredis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/internal/lockfile"
)

// What is in a directory of data, beside the log of Redis.
const (
	redisLogFile = "redis.log"
	redisAddress = "redis.address" // of the redis-server that works there, or did
	dirLock      = "weir.lock"     // locked by the process that has the directory
	redisData    = "appendonlydir"
)

// Directories whose data end with their program: how they are called below that for temporary files, and how old they are before one
// that no program has is removed.
const (
	passingDir = "weir-dev-"
	settling   = time.Minute
)

// ErrNoServer says that there is no redis-server.
var ErrNoServer = errors.New("there is no redis-server on the PATH: install it (apt install redis-server), or use --redis with weir worker")

// DirError says that the directory for the data cannot be used: whoever chose it can choose another.
type DirError struct{ Err error }

func (e *DirError) Error() string { return e.Err.Error() }
func (e *DirError) Unwrap() error { return e.Err }

// ErrDied is the cause of the end of a context that Guard returned.
var ErrDied = errors.New("its redis-server has ended: start it again, and it goes on where that was, if the data are kept")

// Server is a redis-server that works for this program.
type Server struct {
	URL  string
	Stop func() // ends it; may be called twice
	died <-chan struct{}
}

// Guard returns a context that ends with the cause ErrDied when the server has ended before Stop.
func (s *Server) Guard(ctx context.Context) (guarded context.Context, release func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-s.died:
			cancel(ErrDied)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// watched is a server at an address, which stop ends. It is looked at each second.
func watched(address string, stop func()) *Server {
	died, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		for {
			select {
			case <-stopped:
				return
			case <-time.After(time.Second):
			}
			c, err := net.DialTimeout("tcp", address, time.Second)
			if err == nil {
				_ = c.Close()
				continue
			}
			if !errors.Is(err, syscall.ECONNREFUSED) {
				continue // it may only be slow
			}
			select {
			case <-stopped: // which is why nobody is there
			default:
				close(died)
			}
			return
		}
	}()
	return &Server{URL: "redis://" + address, died: died, Stop: sync.OnceFunc(func() { close(stopped); stop() })}
}

// Start starts a redis-server on a free port of this machine and waits for it. One that a killed process has left in the directory is
// gone on with; with fresh, it is ended, and its data are removed. Without a directory the data end with it.
func Start(ctx context.Context, data string, fresh bool) (*Server, error) {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, ErrNoServer
	}
	if data == "" {
		return passing(ctx, program)
	}
	if err := os.MkdirAll(data, 0o750); err != nil {
		return nil, &DirError{err}
	}
	dir, err := filepath.Abs(data)
	if err != nil {
		return nil, err
	}
	lock, err := lockfile.Take(filepath.Join(dir, dirLock))
	switch {
	case errors.Is(err, lockfile.ErrHeld):
		return nil, &DirError{fmt.Errorf("another weir works with the data in %s: stop it, or choose another directory with --data", dir)}
	case err != nil && !errors.Is(err, lockfile.ErrUnsupported):
		return nil, &DirError{fmt.Errorf("the data cannot be in %s: %w; choose another directory with --data", dir, err)}
	}
	unlock := func() { _ = lock.Close() }
	s, err := inDir(ctx, program, dir, fresh, unlock)
	if err != nil {
		unlock()
	}
	return s, err
}

// passing starts a server whose data end with it.
func passing(ctx context.Context, program string) (*Server, error) {
	tidy(ctx)
	dir, err := os.MkdirTemp("", passingDir)
	if err != nil {
		return nil, err
	}
	lock, err := lockfile.Take(filepath.Join(dir, dirLock))
	remove := func() { _ = os.RemoveAll(dir) }
	if err != nil && !errors.Is(err, lockfile.ErrUnsupported) {
		remove()
		return nil, err
	}
	end := func() { remove(); _ = lock.Close() }
	s, err := runRedis(ctx, program, dir, end, "--appendonly", "no")
	if err != nil {
		end()
	}
	return s, err
}

// tidy ends the servers that programs which were killed have left, and removes their directories.
func tidy(ctx context.Context) {
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), passingDir+"*"))
	for _, dir := range dirs {
		if info, err := os.Lstat(dir); err != nil || !info.IsDir() || time.Since(info.ModTime()) < settling {
			continue // it may be about to be locked
		}
		lock, err := lockfile.Take(filepath.Join(dir, dirLock))
		if err != nil { // somebody works there, or it is somebody else's
			continue
		}
		if _, leave, err := leftBehind(ctx, dir); err == nil {
			leave()
			_ = os.RemoveAll(dir)
		}
		_ = lock.Close()
	}
}

// inDir starts the server in a directory that this process has locked; unlock is called behind its end.
func inDir(ctx context.Context, program, dir string, fresh bool, unlock func()) (*Server, error) {
	address, leave, err := leftBehind(ctx, dir)
	if err != nil {
		return nil, err
	}
	if address != "" && !fresh {
		if err := answering(ctx, address); err != nil {
			leave()
			return nil, err
		}
		return watched(address, func() { leave(); unlock() }), nil
	}
	if leave(); fresh {
		if err := os.RemoveAll(filepath.Join(dir, redisData)); err != nil {
			return nil, err
		}
	}
	if err := repairLog(ctx, dir); err != nil {
		return nil, err
	}
	return runRedis(ctx, program, dir, unlock, "--appendonly", "yes")
}

// leftBehind finds a redis-server that works with the data in a directory, as the process that started it was killed. leave ends it, if
// there is one. One that does not answer may have the data nevertheless, as when it is stopped: a second one would write to the same file.
func leftBehind(ctx context.Context, dir string) (address string, leave func(), err error) {
	file := filepath.Join(dir, redisAddress)
	raw, err := os.ReadFile(file) //nolint:gosec // its own
	if err != nil {
		return "", func() {}, nil //nolint:nilerr // there was none
	}
	address = string(raw)
	client := redis.NewClient(&redis.Options{Addr: address, MaxRetries: -1, DialTimeout: time.Second})
	at, err := client.ConfigGet(ctx, "dir").Result()
	if slow := net.Error(nil); errors.As(err, &slow) && slow.Timeout() {
		return "", nil, errors.Join(&DirError{fmt.Errorf("a redis-server at %s has the data in %s, as the weir that started it was killed, and it does not answer: wait until it does, or end it; if that is another program, remove %s", address, dir, file)}, client.Close())
	}
	if err != nil || at["dir"] != dir {
		_ = client.Close()
		return "", func() {}, nil //nolint:nilerr // nobody is there, or somebody else
	}
	return address, sync.OnceFunc(func() {
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		_ = client.Shutdown(late).Err() // it answers by ending
		_ = client.Close()
	}), nil
}

// runRedis runs a redis-server in a directory, until it is stopped; done is called then.
func runRedis(ctx context.Context, program, dir string, done func(), flags ...string) (*Server, error) {
	port, err := freePort(ctx)
	address := net.JoinHostPort("127.0.0.1", port)
	if err == nil { // first: whoever finds it running must know where
		err = os.WriteFile(filepath.Join(dir, redisAddress), []byte(address), 0o600)
	}
	if err != nil {
		return nil, err
	}
	log := filepath.Join(dir, redisLogFile)
	// Its end is ours to tell: the context ends before the jobs have been handed back.
	cmd := exec.Command(program, append([]string{ //nolint:gosec,noctx // of the PATH
		"--bind", "127.0.0.1", "--port", port, "--dir", dir, "--aof-load-truncated", "no", "--save", "", "--maxmemory-policy", "noeviction", "--logfile", log,
	}, flags...)...)
	cmd.SysProcAttr = ownGroup() // Ctrl-C is for weir alone
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", program, err)
	}
	end := func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	}
	if err := answering(ctx, address); err != nil {
		end()
		return nil, fmt.Errorf("redis-server did not start, see %s: %w", log, err)
	}
	return watched(address, func() { end(); done() }), nil
}

// repairLog cuts off what a kill -9 or a power loss left of a transaction that was not written whole: redis-server may
// otherwise carry out half of it.
func repairLog(ctx context.Context, dir string) error {
	manifest := filepath.Join(dir, "appendonlydir", "appendonly.aof.manifest")
	if _, err := os.Stat(manifest); err != nil {
		return nil //nolint:nilerr // there is no log yet
	}
	cmd := exec.CommandContext(ctx, "redis-check-aof", "--fix", manifest) //nolint:gosec // of the PATH
	cmd.Stdin = strings.NewReader("y\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("checking the log of Redis, redis-check-aof --fix %s: %w\n%s", manifest, err, out)
	}
	return nil
}

// freePort asks the system for one.
func freePort(ctx context.Context) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, err
}

// answering waits until a redis-server answers, which it does when it has read its data, however long that takes.
func answering(ctx context.Context, address string) error {
	client := redis.NewClient(&redis.Options{Addr: address, MaxRetries: -1, DialTimeout: time.Second})
	defer client.Close()
	for deadline := time.Now().Add(10 * time.Second); ; {
		err := client.Ping(ctx).Err()
		if err == nil {
			return nil
		}
		if loading := redis.HasErrorPrefix(err, "LOADING"); !loading && time.Now().After(deadline) || ctx.Err() != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
