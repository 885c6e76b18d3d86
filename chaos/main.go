// Command chaos breaks what can break under Weir while Weir works, and checks that nothing
// of what it promises was broken with it: see docs/reliability.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/weirworks/weir/internal/failpoint"

	"github.com/weirworks/weir/chaos/internal/crew"
	"github.com/weirworks/weir/chaos/internal/rig"
)

func main() {
	if role := os.Getenv(crew.RoleEnv); role != "" {
		os.Exit(crew.Main(role)) //nolint:forbidigo // a program ends here
	}
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

// errBad: something that should not be was found.
var errBad = errors.New("it is not as it should be")

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		fmt.Fprintln(stderr, "chaos:", err)
		return exitUsage
	}
	switch {
	case o.mutation:
		err = o.mutations(ctx, stdout, stderr)
	case o.soak:
		err = o.soaks(ctx, stdout, stderr)
	default:
		err = o.run(ctx, stdout, stderr)
	}
	if err != nil {
		fmt.Fprintln(stderr, "chaos:", err)
		return exitFailed
	}
	return exitOK
}

// options are what the flags say.
type options struct {
	rig      rig.Config
	modes    []rig.Mode
	mutation bool
	soak     bool
}

func parse(args []string, stderr io.Writer) (*options, error) {
	fs := flag.NewFlagSet("chaos", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.Usage = func() {
		fmt.Fprint(stderr, usage)
		fs.PrintDefaults()
	}
	seconds := fs.Int("seconds", 60, "how long faults happen")
	seed := fs.Uint64("seed", 0, "of the random schedule; 0 draws one, which is printed")
	workers := fs.Int("workers", 6, "worker processes")
	patience := fs.Duration("patience", 2*time.Minute, "how long it may take after the last fault until work that is under way has come to its end, and then until all is quiet")
	keep := fs.Bool("keep", false, "keep the folder with the Redis and the logs of processes if something is wrong, and say where it is")
	mode := fs.String("mode", "all", "standard, powerloss, failover, reshard or all")
	mutation := fs.Bool("mutation", false, "run against each mutation, which must be noticed, and against none")
	soak := fs.Bool("soak", false, "no faults: a steady load at 70 % of the peak, which must not let anything grow")
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	if *seed == 0 {
		*seed = rand.Uint64N(1_000_000)
	}
	o := &options{mutation: *mutation, soak: *soak, modes: []rig.Mode{rig.Mode(*mode)}, rig: rig.Config{
		Duration: time.Duration(*seconds) * time.Second, Seed: *seed, Workers: *workers, Keep: *keep,
		Lease: time.Second, Patience: *patience, Progress: stderr,
	}}
	switch {
	case fs.NArg() > 0:
		return nil, fmt.Errorf("it takes no arguments: %q", fs.Arg(0))
	case !failpoint.Enabled:
		return nil, errors.New("it was built without failpoints: use make chaos, or go build -tags failpoints")
	case *patience <= 0:
		return nil, errors.New("give some patience")
	case *seconds < 1 || *workers < 2:
		return nil, errors.New("give at least 1 second and 2 workers")
	case *mode == "all":
		o.modes = rig.Modes
	case !slices.Contains(rig.Modes, rig.Mode(*mode)):
		return nil, fmt.Errorf("mode %q: use one of %v, or all", *mode, rig.Modes)
	}
	return o, nil
}

const usage = `Usage: chaos [flags]

Starts a Redis and worker processes of its own, gives them work, and meanwhile kills, stops and
restarts them, cuts and slows their connections, and loses replies, by a random schedule. Then
the faults stop, all work must come to its end, and each message, state, status and key is
checked against what was asked for. Prints one JSON object of counters for each mode and exits with 1 if
one that should be zero is not, or if a failpoint was never hit.

Modes: standard loses nothing that was acknowledged. powerloss cuts the end off the log of the
Redis, so that up to its last second is lost; failover lets a replica that lags up to a second take over.
In these two what is lost must be a suffix of what was done, and all else is checked as ever.
reshard moves slots of a cluster of three from server to server while workers die; nothing may be lost.
"all" runs the four one after another; standard lasts as long as -seconds says, the others a quarter of it each.

The same seed gives the same schedule, not the same interleaving.

`

// run runs the harness in each mode.
func (o *options) run(ctx context.Context, stdout, stderr io.Writer) error {
	var found error
	for _, mode := range o.modes {
		cfg := o.rig
		if cfg.Mode = mode; mode != rig.Standard && len(o.modes) > 1 {
			cfg.Duration /= 4
		}
		report, err := rig.Run(ctx, cfg)
		if report != nil {
			for _, d := range report.Details {
				fmt.Fprintln(stderr, "chaos:", d)
			}
		}
		if err != nil {
			return err
		}
		fmt.Fprintln(stdout, report.JSON())
		if bad := report.Bad(); len(bad) > 0 {
			found = fmt.Errorf("%w: mode %s, seed %d: %v", errBad, mode, cfg.Seed, bad)
			fmt.Fprintln(stderr, "chaos:", found)
		}
		if report.Kept != "" {
			fmt.Fprintln(stderr, "chaos: see", report.Kept)
		}
	}
	return found
}
