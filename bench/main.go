// Command bench sets Weir beside other systems at the same work, in one run, on the same
// machine: see docs/performance.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/weirworks/weir/bench/internal/lab"
	"github.com/weirworks/weir/bench/internal/peers"
	"github.com/weirworks/weir/bench/internal/suite"
	"github.com/weirworks/weir/bench/internal/weir"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code) //nolint:forbidigo // a program ends here
}

// Exit codes.
const (
	exitOK = iota
	exitFailed
	exitUsage
)

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 && args[0] == "victim" {
		return victim(ctx, args[1:], stdout, stderr)
	}
	o, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return exitOK
	}
	if err != nil {
		fmt.Fprintln(stderr, "bench:", err)
		return exitUsage
	}
	if err := o.run(ctx, stdout, stderr); err != nil {
		fmt.Fprintln(stderr, "bench:", err)
		return exitFailed
	}
	return exitOK
}

// options are what the flags say.
type options struct {
	suite suite.Suite
	peers []string
	only  []string
	out   string
}

// full and quick are how much work there is.
var (
	full = lab.Size{
		Chain: 20_000, Hops: 300, Stream: 96_000, Streams: 16, Batch: 960_000, Trees: 32, Children: 1000,
		Wakes: 300, Idle: 10 * time.Second, Weighed: []int{100_000}, Jobs: []int{1000, 100_000}, Siblings: []int{1, 1000, 100_000},
		Broods: []int{10, 10_000},
		Kills:  5, Stuck: 10, Patience: time.Hour,
		Waiting: 1_000_000, Writes: 16_000, Subscribers: 10_000, Family: 100_000, Wide: 1000, Members: 10_000,
		Triggers: 10_000, Spread: time.Minute, Posts: 96_000, Waiters: 1000, Payloads: 500_000,
	}
	quick = lab.Size{
		Chain: 2_000, Hops: 50, Stream: 9_600, Streams: 16, Batch: 96_000, Trees: 2, Children: 1000,
		Wakes: 50, Idle: 2 * time.Second, Weighed: []int{10_000}, Jobs: []int{1000, 10_000}, Siblings: []int{1, 1000}, Broods: []int{10, 1000},
		Kills: 1, Stuck: 10, Patience: 10 * time.Minute,
		Waiting: 100_000, Writes: 16_000, Subscribers: 1000, Family: 5000, Wide: 1000, Members: 1000,
		Triggers: 500, Spread: 10 * time.Second, Posts: 9_600, Waiters: 100, Payloads: 100_000,
	}
)

// million is the number of jobs that -slow adds to memory, growth and spawn.
const million = 1_000_000

func parse(args []string, stderr io.Writer) (*options, error) {
	o := &options{suite: suite.Suite{Size: full, Progress: stderr}}
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(stderr)
	only := f.String("only", "", "workloads to run, with commas between (default all)")
	with := f.String("peers", "asynq,bullmq", "systems to compare with, with commas between, or none")
	small := f.Bool("quick", false, "little work: for a look, not for figures")
	slow := f.Bool("slow", false, "also what takes many minutes: a million jobs, and asynq after a kill -9")
	f.IntVar(&o.suite.Rounds, "rounds", 3, "how often each case runs")
	f.IntVar(&o.suite.Concurrency, "concurrency", 16, "runs, tasks and producers at a time, of every system")
	f.StringVar(&o.suite.Fsync, "aof", "", "appendfsync of Redis: everysec or always (default no persistence)")
	f.StringVar(&o.out, "out", "results.json", "file for the results")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	if *small {
		o.suite.Size = quick
	}
	if *slow {
		o.suite.Size.Slow = true
		o.suite.Size.Jobs = append(slices.Clone(o.suite.Size.Jobs), million)
		o.suite.Size.Broods = append(slices.Clone(o.suite.Size.Broods), million)
		o.suite.Size.Weighed = append(slices.Clone(o.suite.Size.Weighed), million)
	}
	switch {
	case f.NArg() > 0:
		return nil, fmt.Errorf("%q is no flag: there is nothing but flags", f.Arg(0))
	case o.suite.Rounds < 1 || o.suite.Concurrency < 1:
		return nil, errors.New("-rounds and -concurrency are at least 1")
	case !slices.Contains([]string{"", "everysec", "always"}, o.suite.Fsync):
		return nil, fmt.Errorf("-aof is everysec or always, not %q", o.suite.Fsync)
	}
	o.peers, o.only = list(*with), list(*only)
	return o, errors.Join(o.check(), o.suite.Size.Check())
}

// known are the systems that -peers can name. Each says what it does, or why it cannot.
var known = map[string]func(ctx context.Context, s lab.Size) ([]lab.Case, error){
	peers.Asynq:    func(_ context.Context, s lab.Size) ([]lab.Case, error) { return peers.AsynqCases(s.Slow), nil },
	peers.BullMQ:   func(ctx context.Context, _ lab.Size) ([]lab.Case, error) { return peers.BullMQCases(ctx, "bullmq") },
	peers.River:    func(ctx context.Context, _ lab.Size) ([]lab.Case, error) { return peers.RiverCases(ctx, "river") },
	peers.Temporal: func(ctx context.Context, _ lab.Size) ([]lab.Case, error) { return peers.TemporalCases(ctx, "temporal") },
	"none":         func(context.Context, lab.Size) ([]lab.Case, error) { return nil, nil },
}

// check refuses names that are not known.
func (o *options) check() error {
	names := slices.Sorted(maps.Keys(known))
	for _, name := range o.peers {
		if known[name] == nil {
			return fmt.Errorf("-peers: %q is not one of %s", name, strings.Join(names, ", "))
		}
	}
	workloads := suite.Workloads(weir.Cases())
	for _, name := range o.only {
		if !slices.Contains(workloads, name) {
			return fmt.Errorf("-only: %q is not one of %s", name, strings.Join(workloads, ", "))
		}
	}
	return nil
}

// gather collects the cases of Weir, of the bare scripts and of the peers that can run.
func (o *options) gather(ctx context.Context) {
	cases := append(weir.Cases(), peers.CeilingCases()...)
	o.suite.Absent = map[string]string{}
	for _, name := range o.peers {
		theirs, err := known[name](ctx, o.suite.Size)
		if err != nil {
			o.suite.Absent[name] = err.Error()
		}
		cases = append(cases, theirs...)
	}
	o.suite.Cases = slices.DeleteFunc(cases, func(c lab.Case) bool {
		return len(o.only) > 0 && !slices.Contains(o.only, c.Workload)
	})
}

// list splits a text at its commas.
func list(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
}

func (o *options) run(ctx context.Context, stdout, stderr io.Writer) error {
	machine := suite.ThisMachine(ctx)
	if o.suite.Cases == nil {
		o.gather(ctx)
	}
	results, err := o.suite.Run(ctx)
	if err != nil {
		return err
	}
	results.Machine = machine
	if err := results.Print(stdout); err != nil {
		return err
	}
	if err := results.Write(o.out); err != nil {
		return err
	}
	fmt.Fprintf(stderr, "\nThe results are in %s.\n", o.out)
	return nil
}

// victim is this program as a worker that is to be killed: the system, the Redis and the
// concurrency are its arguments.
func victim(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	serve := map[string]func(context.Context, *lab.Lab, io.Writer) error{
		weir.System: weir.Victim, weir.Ticking: weir.Ticker, peers.Asynq: peers.AsynqVictim,
	}
	if len(args) != 3 || serve[args[0]] == nil {
		fmt.Fprintln(stderr, "bench victim: needs system, address of Redis and concurrency")
		return exitUsage
	}
	l, err := lab.Attach(args[1], args[2])
	if err == nil {
		ctx, cancel := lab.WithStdin(ctx)
		defer cancel()
		err = serve[args[0]](ctx, l, stdout)
	}
	if err != nil {
		fmt.Fprintln(stderr, "bench victim:", err)
		return exitFailed
	}
	return exitOK
}
