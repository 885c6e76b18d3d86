package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

// pipeEnv tells a worker process that its standard input is a pipe from the process that started it.
const pipeEnv = "ORDERS_PIPE"

// fleet is worker processes of this program. One that dies is started anew. In production an init system or an orchestrator does
// that, with: orders work --redis URL.
type fleet struct {
	cancel context.CancelFunc
	all    sync.WaitGroup
}

func startFleet(ctx context.Context, s *settings, stderr io.Writer) *fleet {
	ctx, cancel := context.WithCancel(ctx)
	f := &fleet{cancel: cancel}
	for range s.workers {
		f.all.Go(func() {
			for ctx.Err() == nil {
				if err := process(ctx, s, stderr); err != nil && ctx.Err() == nil {
					fmt.Fprintln(stderr, "orders: a worker process ended, and is started anew:", err)
					_ = sleep(ctx, 100*time.Millisecond)
				}
			}
		})
	}
	return f
}

// stop lets the processes finish their runs, and waits for them.
func (f *fleet) stop() {
	f.cancel()
	f.all.Wait()
}

// process is one worker process, from its start to its end. It ends when its pipe is closed: by the end of ctx, or as this process dies.
func process(ctx context.Context, s *settings, stderr io.Writer) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	c := exec.Command(self, "work", "--redis", s.redis, "--namespace", s.namespace) //nolint:noctx // it drains when ctx ends
	c.Env = append(os.Environ(), pipeEnv+"=1")
	c.Stdout, c.Stderr = stderr, stderr
	pipe, err := c.StdinPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = pipe.Close() })()
	return c.Wait()
}
