package lab

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"github.com/redis/go-redis/v9"
)

// Begun is what a victim writes, on a line of its own, when the run of a job begins.
const Begun = "begun"

// Victim is a worker in a process of its own, which is this program again. Its runs never end.
type Victim struct {
	cmd   *exec.Cmd
	stdin io.Closer // the victim ends with it, so it does not outlive this process
	lines *bufio.Scanner
}

// StartVictim starts this program again as the worker of a system. main knows the arguments.
func (l *Lab) StartVictim(system string) (*Victim, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	v := &Victim{cmd: exec.Command(self, "victim", system, l.Redis.Addr(), strconv.Itoa(l.Concurrency))}
	v.cmd.Stderr = os.Stderr
	if v.stdin, err = v.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := v.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	v.lines = bufio.NewScanner(out)
	if err := v.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting a worker: %w", err)
	}
	return v, nil
}

// Began waits until the victim has begun n runs.
func (v *Victim) Began(n int) error {
	for range n {
		if !v.lines.Scan() {
			return errors.Join(errors.New("the worker ended before it had begun its runs"), v.lines.Err())
		}
		if line := v.lines.Text(); line != Begun {
			return fmt.Errorf("the worker says %q", line)
		}
	}
	return nil
}

// Stop tells the victim to end, with SIGTERM.
func (v *Victim) Stop() { _ = v.cmd.Process.Signal(syscall.SIGTERM) }

// Kill ends the victim with SIGKILL. Killing it again does nothing.
func (v *Victim) Kill() {
	_ = v.cmd.Process.Kill()
	_ = v.stdin.Close()
	_ = v.cmd.Wait() // killed on purpose: the status says nothing
}

// Attach is the lab of a victim: the Redis is somebody else's.
func Attach(addr, concurrency string) (*Lab, error) {
	n, err := strconv.Atoi(concurrency)
	if err != nil {
		return nil, fmt.Errorf("concurrency: %w", err)
	}
	r := &Redis{Client: redis.NewClient(&redis.Options{Addr: addr}), addr: addr}
	return &Lab{Redis: r, Concurrency: n}, nil
}

// WithStdin ends its context when the standard input does: with the process that started this one.
func WithStdin(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	return ctx, cancel
}
