package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	startTimeout = 30 * time.Second
	startTries   = 10
)

var errPortTaken = errors.New("port taken")

// Redis is a redis-server process of the benchmark's own.
type Redis struct {
	*redis.Client
	addr   string
	dir    string
	cmd    *exec.Cmd
	done   chan struct{} // closed when the process has ended
	others []*Redis      // of the Cluster that it is the first of
}

// StartRedis runs a redis-server on a free port of 127.0.0.1 in a directory of its own.
// fsync is what appendfsync is to be; "" means no persistence at all.
func StartRedis(ctx context.Context, fsync string) (*Redis, error) { return start(ctx, fsync) }

func start(ctx context.Context, fsync string, options ...string) (*Redis, error) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, errors.New("redis-server not found on PATH: `make redis` installs it")
	}
	for range startTries {
		r, err := startRedis(ctx, path, fsync, options)
		if errors.Is(err, errPortTaken) {
			continue
		}
		return r, err
	}
	return nil, fmt.Errorf("starting redis-server: %d ports in a row were taken", startTries)
}

func startRedis(ctx context.Context, path, fsync string, options []string) (*Redis, error) {
	dir, err := os.MkdirTemp("", "weir-bench-redis-")
	if err != nil {
		return nil, err
	}
	// Below the ports that the kernel hands out, so that none of our own clients has it.
	port := strconv.Itoa(10000 + rand.IntN(22000))
	r := &Redis{addr: net.JoinHostPort("127.0.0.1", port), dir: dir, done: make(chan struct{})}
	args := []string{"--bind", "127.0.0.1", "--port", port, "--dir", dir, "--save", "", "--appendonly", "no"}
	args = append(args, options...)
	if fsync != "" {
		args = append(args, "--appendonly", "yes", "--appendfsync", fsync)
	}
	log, err := os.Create(filepath.Join(dir, "redis.log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	r.cmd = exec.Command(path, args...)
	r.cmd.Dir, r.cmd.Stdout, r.cmd.Stderr = dir, log, log
	if err := r.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting redis-server: %w", err)
	}
	go func() {
		defer close(r.done)
		_ = r.cmd.Wait() // killed on purpose: the status says nothing
	}()
	r.Client = redis.NewClient(&redis.Options{Addr: r.addr})
	if err := r.ready(ctx); err != nil {
		return nil, errors.Join(err, r.Stop())
	}
	return r, nil
}

// StartCluster runs three redis-servers that are a Cluster, and returns the first of them.
func StartCluster(ctx context.Context, fsync string) (*Redis, error) {
	first, err := start(ctx, fsync, "--cluster-enabled", "yes")
	if err != nil {
		return nil, err
	}
	for range 2 {
		r, err := start(ctx, fsync, "--cluster-enabled", "yes")
		if err != nil {
			return nil, errors.Join(err, first.Stop())
		}
		first.others = append(first.others, r)
	}
	args := []string{"--cluster", "create", "--cluster-yes"}
	for _, r := range first.all() {
		args = append(args, r.addr)
	}
	if out, err := exec.CommandContext(ctx, "redis-cli", args...).CombinedOutput(); err != nil {
		return nil, errors.Join(fmt.Errorf("redis-cli --cluster create: %w:\n%s", err, out), first.Stop())
	}
	for _, r := range first.all() {
		if err := r.serves(ctx); err != nil {
			return nil, errors.Join(err, first.Stop())
		}
	}
	return first, nil
}

// serves waits until a server of a Cluster takes commands: it does so only a while after all have joined.
func (r *Redis) serves(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		info, err := r.ClusterInfo(ctx).Result()
		if err != nil {
			return err
		}
		if strings.Contains(info, "cluster_state:ok") {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("a server of the Cluster takes no commands: %w", ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (r *Redis) all() []*Redis { return append([]*Redis{r}, r.others...) }

// Addr is the server's host and port.
func (r *Redis) Addr() string { return r.addr }

// URL is the server's address as Weir takes it, or that of its Cluster.
func (r *Redis) URL() string {
	if len(r.others) == 0 {
		return "redis://" + r.addr + "/0"
	}
	var addrs []string
	for _, one := range r.all() {
		addrs = append(addrs, one.addr)
	}
	return "redis+cluster://" + strings.Join(addrs, ",")
}

// Stop ends the server, and those of its Cluster, and removes what they left.
func (r *Redis) Stop() (err error) {
	for _, one := range r.all() {
		_ = one.Close() // nothing is lost: the server ends with it
		_ = one.cmd.Process.Kill()
		<-one.done
		err = errors.Join(err, os.RemoveAll(one.dir))
	}
	return err
}

// ready waits until the server says in its own log that it listens: another program that
// has the port might answer a PING.
func (r *Redis) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		log, err := r.log()
		if err != nil {
			return err
		}
		if bytes.Contains(log, []byte("Ready to accept connections")) {
			return r.Ping(ctx).Err()
		}
		select {
		case <-r.done:
			return r.ended()
		case <-ctx.Done():
			return fmt.Errorf("redis-server is not ready: %w", ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (r *Redis) log() ([]byte, error) { return os.ReadFile(filepath.Join(r.dir, "redis.log")) }

// ended tells why the server has ended at its start.
func (r *Redis) ended() error {
	log, err := r.log()
	if err != nil {
		return err
	}
	if bytes.Contains(log, []byte("Address already in use")) {
		return errPortTaken
	}
	return fmt.Errorf("redis-server ended at its start:\n%s", log)
}
