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

// ErrNoServer says that there is no redis-server.
var ErrNoServer = errors.New("there is no redis-server on the PATH: install it (apt install redis-server), or use --redis with weir worker")

// DirError says that the directory for the data cannot be used: whoever chose it can choose another.
type DirError struct{ Err error }

func (e *DirError) Error() string { return e.Err.Error() }
func (e *DirError) Unwrap() error { return e.Err }

// Start starts a redis-server on a free port of this machine and waits for it. One that a killed process has left in the directory is
// gone on with; with fresh, it is ended, and its data are removed. Without a directory the data end with it.
func Start(ctx context.Context, data string, fresh bool) (url string, stop func(), err error) {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		return "", nil, ErrNoServer
	}
	if data == "" {
		dir, err := os.MkdirTemp("", "weir-dev-")
		if err != nil {
			return "", nil, err
		}
		return runRedis(ctx, program, dir, func() { _ = os.RemoveAll(dir) }, "--appendonly", "no")
	}
	if err := os.MkdirAll(data, 0o750); err != nil {
		return "", nil, &DirError{err}
	}
	dir, err := filepath.Abs(data)
	if err != nil {
		return "", nil, err
	}
	lock, err := lockfile.Take(filepath.Join(dir, dirLock))
	if err != nil && !errors.Is(err, lockfile.ErrUnsupported) {
		return "", nil, &DirError{fmt.Errorf("another weir works with the data in %s: stop it, or choose another directory with --data (%w)", dir, err)}
	}
	unlock := func() { _ = lock.Close() }
	address, leave := leftBehind(ctx, dir)
	if address != "" && !fresh {
		if err := answering(ctx, address); err != nil {
			leave()
			unlock()
			return "", nil, err
		}
		return "redis://" + address, sync.OnceFunc(func() { leave(); unlock() }), nil
	}
	if leave(); fresh {
		if err := os.RemoveAll(filepath.Join(dir, redisData)); err != nil {
			unlock()
			return "", nil, err
		}
	}
	if err := repairLog(ctx, dir); err != nil {
		unlock()
		return "", nil, err
	}
	return runRedis(ctx, program, dir, unlock, "--appendonly", "yes")
}

// leftBehind finds a redis-server that works with the data in a directory, as the process that started it was killed. leave ends it, if
// there is one.
func leftBehind(ctx context.Context, dir string) (address string, leave func()) {
	raw, err := os.ReadFile(filepath.Join(dir, redisAddress)) //nolint:gosec // its own
	if err != nil {
		return "", func() {}
	}
	address = string(raw)
	client := redis.NewClient(&redis.Options{Addr: address, MaxRetries: -1, DialTimeout: time.Second})
	if at, err := client.ConfigGet(ctx, "dir").Result(); err != nil || at["dir"] != dir {
		_ = client.Close()
		return "", func() {}
	}
	return address, sync.OnceFunc(func() {
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		_ = client.Shutdown(late).Err() // it answers by ending
		_ = client.Close()
	})
}

// runRedis runs a redis-server in a directory, until it is stopped; done is called then, or if it does not start.
func runRedis(ctx context.Context, program, dir string, done func(), flags ...string) (url string, stop func(), err error) {
	port, err := freePort(ctx)
	address := net.JoinHostPort("127.0.0.1", port)
	if err == nil { // first: whoever finds it running must know where
		err = os.WriteFile(filepath.Join(dir, redisAddress), []byte(address), 0o600)
	}
	if err != nil {
		done()
		return "", nil, err
	}
	log := filepath.Join(dir, redisLogFile)
	// Its end is ours to tell: the context ends before the jobs have been handed back.
	cmd := exec.Command(program, append([]string{ //nolint:gosec,noctx // of the PATH
		"--bind", "127.0.0.1", "--port", port, "--dir", dir, "--aof-load-truncated", "no", "--save", "", "--maxmemory-policy", "noeviction", "--logfile", log,
	}, flags...)...)
	cmd.SysProcAttr = ownGroup() // Ctrl-C is for weir alone
	if err := cmd.Start(); err != nil {
		done()
		return "", nil, fmt.Errorf("starting %s: %w", program, err)
	}
	stop = sync.OnceFunc(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
		done()
	})
	if err := answering(ctx, address); err != nil {
		stop()
		return "", nil, fmt.Errorf("redis-server did not start, see %s: %w", log, err)
	}
	return "redis://" + address, stop, nil
}

// repairLog cuts off what a power loss left of a transaction that was not written whole: redis-server may
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
