// Package crew is what runs in the processes that the harness kills: the workers, and the actors,
// which do what clients do.
package crew

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/signal"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/failpoint"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/worker"
)

// The environment of a process of the crew.
const (
	RoleEnv      = "WEIR_CHAOS_ROLE" // RoleWorker or RoleActor
	URLEnv       = "WEIR_CHAOS_URL"
	NamespaceEnv = "WEIR_CHAOS_NAMESPACE"
	LeaseEnv     = "WEIR_CHAOS_LEASE"
	LacksEnv     = "WEIR_CHAOS_LACKS"   // which third of the types a worker lacks, from 0 on, or -1
	VersionEnv   = "WEIR_CHAOS_VERSION" // of the type Tally that a worker has: 1 or 2
)

// Roles.
const (
	RoleWorker = "worker"
	RoleActor  = "actor"
)

// What a worker writes to its standard output, a line for each, with a job's ID behind it or,
// behind Bye, JSON of a Farewell. Freeze asks the harness to stop the process until its run was given
// up and the job has another one.
const (
	Begun  = "+"
	Ended  = "-"
	Bye    = "bye "
	Freeze = "freeze "
)

// Farewell is what a worker says that was told to stop.
type Farewell struct {
	Leaked int `json:"leaked"` // goroutines that are still there
}

const (
	drain       = 300 * time.Millisecond
	concurrency = 8
	// settle is how long goroutines may take to end when everything was closed.
	settle = 5 * time.Second
)

// Main is the main function of a process of the crew. It returns the exit code.
func Main(role string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	err := fmt.Errorf("%s: there is no role %q", RoleEnv, role)
	switch role {
	case RoleWorker:
		err = work(ctx)
	case RoleActor:
		err = act(ctx)
	}
	if err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func open(ctx context.Context) (*redisstore.Store, error) {
	return redisstore.Open(ctx, redisstore.Config{URL: os.Getenv(URLEnv), Namespace: os.Getenv(NamespaceEnv)})
}

// work serves jobs until ctx ends.
func work(ctx context.Context) error {
	lease, err := time.ParseDuration(os.Getenv(LeaseEnv))
	if err != nil {
		return fmt.Errorf("%s: %w", LeaseEnv, err)
	}
	lacks, err := strconv.Atoi(os.Getenv(LacksEnv))
	if err != nil {
		return fmt.Errorf("%s: %w", LacksEnv, err)
	}
	version, err := strconv.Atoi(os.Getenv(VersionEnv))
	if err != nil {
		return fmt.Errorf("%s: %w", VersionEnv, err)
	}
	go func() { // the harness is gone when this ends
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1) //nolint:forbidigo // this is a program, which nobody waits for any more
	}()
	before := runtime.NumGoroutine() + 1 // that of the line above may not have begun
	s, err := open(ctx)
	if err != nil {
		return err
	}
	e, err := worker.New(worker.Config{
		Store: s, Workers: mixed(lacks, version), Concurrency: concurrency, Lease: lease, Drain: drain,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		return errors.Join(err, s.Close())
	}
	both, stop := context.WithCancel(ctx)
	listened := make(chan error, 1)
	go func() { listened <- listen(both, s) }()
	err = e.Run(ctx)
	stop()
	if err := errors.Join(err, <-listened, s.Close()); err != nil {
		return err
	}
	raw, err := json.Marshal(Farewell{Leaked: leaked(before)})
	say(Bye + string(raw))
	return err
}

// leaked counts the goroutines that are still there and should not be, and shows them.
func leaked(before int) int {
	for deadline := time.Now().Add(settle); ; time.Sleep(10 * time.Millisecond) {
		n := runtime.NumGoroutine() - before
		if n <= 0 {
			return 0
		}
		if time.Now().After(deadline) {
			_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 1)
			return n
		}
	}
}

// say writes a line at once: what was said before a kill is heard.
func say(line string) { _, _ = os.Stdout.WriteString(line + "\n") }

// running tells that a run of a job begins, and by what it returns that it ends. In between
// is a failpoint, and some time.
func running(run *worker.Run) (ended func()) {
	id := string(run.ID())
	say(Begun + id)
	return func() { say(Ended + id) }
}

// think takes some time in the middle of a run.
func think() {
	failpoint.Hit(failpoint.MidUser)
	switch n := rand.IntN(100); {
	case n == 0:
		time.Sleep(60 * time.Millisecond)
	case n < 20:
		time.Sleep(time.Duration(rand.IntN(4)) * time.Millisecond)
	}
}

// freeze has this process stopped, seldom: a run that it is in comes back when its job has another
// one.
func freeze(run *worker.Run) {
	if rand.IntN(freezeOne) == 0 {
		say(Freeze + string(run.ID()))
		time.Sleep(20 * time.Millisecond) // in the middle of which the process stops
	}
}

// freezeOne of that many runs of a Source is frozen.
const freezeOne = 3

// Order is what an actor is to do, a line of JSON on its standard input.
type Order struct {
	What  string `json:"what"` // one of the acts below
	Job   job.ID `json:"job,omitempty"`
	Child job.ID `json:"child,omitempty"` // of Adopt
	Alias string `json:"alias,omitempty"` // of StartLarge
	Jobs  int    `json:"jobs,omitempty"`  // of StartLarge
	Key   string `json:"key,omitempty"`   // of StartUnique
	N     int    `json:"n,omitempty"`     // of StartUnique and Mend
}

// Acts.
const (
	StartLarge  = "start"
	StartUnique = "unique"
	Terminate   = "terminate"
	Delete      = "delete"
	Adopt       = "adopt"
	Requeue     = "requeue"
	Fail        = "fail"
	Mend        = "mend"
)

// WardName is the name of an adopted child.
const WardName = "ward"

// Answer is what an actor has to say, a line of JSON.
type Answer struct {
	Job   job.ID `json:"job,omitempty"`
	Error string `json:"error,omitempty"`
	Gone  bool   `json:"gone,omitempty"` // the error is that the job does not exist
}

func act(ctx context.Context) error {
	s, err := open(ctx)
	if err != nil {
		return err
	}
	c := client.New(s)
	in := json.NewDecoder(os.Stdin)
	for {
		var o Order
		if err := in.Decode(&o); err != nil {
			return errors.Join(ctx.Err(), s.Close()) // the harness has no more to say
		}
		id, err := o.obey(ctx, c)
		a := Answer{Job: id, Gone: errors.Is(err, job.ErrNotFound)}
		if err != nil {
			a.Error = strings.ReplaceAll(err.Error(), "\n", " ")
		}
		raw, err := json.Marshal(a)
		if err != nil {
			return err
		}
		say(string(raw))
	}
}

func (o Order) obey(ctx context.Context, c *client.Client) (job.ID, error) {
	if o.What == StartLarge {
		h, err := c.Start(ctx, Large(o.Jobs), job.Alias(o.Alias))
		if err != nil {
			return "", err
		}
		return h.ID(), nil
	}
	if o.What == StartUnique {
		return o.startUnique(ctx, c)
	}
	h, err := c.Find(ctx, string(o.Job))
	if err != nil {
		return o.Job, err
	}
	switch o.What {
	case Fail:
		err = h.Fail(ctx, "by hand")
	case Mend:
		err = o.repair(ctx, h)
	case Terminate:
		err = h.TerminateAll(ctx)
	case Delete:
		err = h.Delete(ctx)
	case Requeue:
		err = requeue(ctx, c, h)
	case Adopt:
		var child *client.Handle
		if child, err = c.Find(ctx, string(o.Child)); err == nil {
			err = h.Adopt(ctx, child, WardName)
		}
	default:
		err = fmt.Errorf("no act %q", o.What)
	}
	return o.Job, err
}
