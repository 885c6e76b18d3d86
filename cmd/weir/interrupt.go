package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/worker"
)

const (
	// stopTold is how long an engine stops before it is said what it waits for: most runs are over before.
	stopTold = 200 * time.Millisecond
	// cutOff is how long the program may take to end after the second signal.
	cutOff = time.Second
	// namedRuns is how many of the runs that are waited for are named.
	namedRuns = 3
)

// interrupts are the signals that end the program: the first lets it finish what it has begun, the second
// does not.
type interrupts struct {
	mu       sync.Mutex
	stopping bool // there was one, or an engine stops without
	twice    bool
	abort    []func() // called at the second signal
	kill     []func() // called if the program has not ended then
}

type interruptsKey struct{}

// interruptsOf returns those that a context was made with; nil for a context of a test.
func interruptsOf(ctx context.Context) *interrupts {
	i, _ := ctx.Value(interruptsKey{}).(*interrupts)
	return i
}

// catch returns a context that ends at the first signal. The second one ends the program.
func catch() (context.Context, *interrupts) {
	i := &interrupts{}
	ctx, cancel := context.WithCancel(context.WithValue(context.Background(), interruptsKey{}, i))
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // as nohup has it
		signal.Notify(signals, syscall.SIGHUP)
	}
	go func() {
		for range signals {
			cancel()
			if i.second() {
				break
			}
		}
		time.Sleep(cutOff)
		killed := make(chan struct{})
		go func() {
			defer close(killed)
			i.mu.Lock() // for good
			for _, fn := range i.kill {
				fn()
			}
		}()
		select {
		case <-killed:
		case <-time.After(cutOff):
		}
		os.Exit(exitInterrupted)
	}()
	return ctx, i
}

// second notes a signal, and aborts if something stops already.
func (i *interrupts) second() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.stopping {
		i.stopping = true
		return false
	}
	i.twice = true
	for _, fn := range i.abort {
		fn()
	}
	return true
}

// stop notes that an engine stops, so that the next signal is the second one. It tells whether a signal is why.
func (i *interrupts) stop() (signalled bool) {
	if i == nil {
		return false
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	signalled, i.stopping = i.stopping, true
	return signalled
}

// code is the exit code of a program that ends by itself with another one.
func (i *interrupts) code(code int) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.twice {
		return exitInterrupted
	}
	return code
}

// add notes what the second signal does, and what is done before a program ends that it could not end otherwise.
func (i *interrupts) add(abort, kill func()) {
	if i == nil {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.twice {
		abort()
	}
	i.abort, i.kill = append(i.abort, abort), append(i.kill, kill)
}

func nothing() {}

// tellStop says what an engine that stops waits for, if that takes a while, until it is called to be over.
func tellStop(ctx context.Context, w io.Writer, e *worker.Engine, client *client.Client, kept bool) (over func()) {
	signals := interruptsOf(ctx)
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var telling sync.WaitGroup
	telling.Go(func() {
		if pause(ctx, stopTold) != nil {
			return
		}
		runs := e.Running()
		if len(runs) == 0 {
			return
		}
		names := make([]string, 0, namedRuns+1)
		for _, r := range runs[:min(len(runs), namedRuns)] {
			names = append(names, pathOf(ctx, client, r))
		}
		if more := len(runs) - namedRuns; more > 0 {
			names = append(names, fmt.Sprintf("%d more", more))
		}
		word, again := "Ctrl-C", ""
		if signals.stop() {
			word += " again"
		}
		if kept {
			again = "; what is cut off then runs again, at the latest when its lease ends"
		}
		fmt.Fprintf(w, "weir: stopping: waiting up to %s for %s (%s); press %s to stop at once%s\n",
			term.Duration(worker.DefaultDrain), counted(len(runs), "run"), term.Clean(strings.Join(names, ", ")), word, again)
	})
	return func() {
		cancel()
		telling.Wait()
	}
}

// pathOf is a job's names from its root down, or its type if they cannot be had soon.
func pathOf(ctx context.Context, client *client.Client, r store.RunningJob) string {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	path := ""
	for id := r.Job; id != ""; {
		info, err := client.At(id).Info(ctx)
		if err != nil {
			return r.Type
		}
		path = cmp.Or(info.Name, info.Type) + path
		if id = info.Parent; id != "" {
			path = "/" + path
		}
	}
	return path
}
