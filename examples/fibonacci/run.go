package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"os"
	"strings"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/redisstore/embedded"
	"github.com/weirworks/weir/worker"
)

// maxN bounds the tree: it has 1 + jobs(n-1) + jobs(n-2) jobs.
const (
	maxN = 20
	why  = "every number is a job with two children, so the tree grows exponentially: 20 takes 21,891 jobs, 40 would take 331 million"
)

// Exit codes.
const (
	exitOK    = 0
	exitError = 1
	exitUsage = 2
)

// usageError is the user's to correct.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

const help = `Print the N-th Fibonacci number, computed by a tree of durable jobs.

The job for n has one child for n-1 and one for n-2, sleeps until both are completed,
and adds what they wrote. N is 0 to 20, because every number is a job with two
children: the tree of 20 has 21,891 jobs, that of 40 would have 331 million. With
--redis 20 takes about a minute; the Redis in this process is several times slower.

Usage: fibonacci [--redis URL] N

URL is that of the Redis that keeps the jobs: $WEIR_REDIS_URL without it, or one in this
process.

  fibonacci 12
  fibonacci --redis redis://localhost:6379 20
`

// Main runs the program and returns its exit code.
func Main(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("fibonacci", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	url := flags.String("redis", os.Getenv("WEIR_REDIS_URL"), "")
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		_, _ = io.WriteString(stdout, help)
		return exitOK
	case err != nil:
		err = usagef("%w; see fibonacci --help", err)
	default:
		err = run(ctx, *url, flags.Args(), stdout)
	}
	if err == nil {
		return exitOK
	}
	code := exitError
	if errors.As(err, new(usageError)) {
		code = exitUsage
	} else if ctx.Err() != nil {
		err = errors.New("stopped")
	}
	fmt.Fprintln(stderr, "fibonacci: "+strings.ReplaceAll(err.Error(), "\n", "; "))
	return code
}

func run(ctx context.Context, url string, args []string, stdout io.Writer) error {
	n, err := parse(args)
	if err != nil {
		return err
	}
	result, err := compute(ctx, url, n)
	if err == nil {
		_, err = fmt.Fprintln(stdout, result)
	}
	return err
}

// parse reads N.
func parse(args []string) (int, error) {
	if len(args) != 1 {
		return 0, usagef("give one number, not %d, as in: fibonacci 12", len(args))
	}
	n, ok := new(big.Int).SetString(args[0], 10)
	switch {
	case !ok:
		return 0, usagef("N is %.40q; give a whole number, as in: fibonacci 12", args[0])
	case n.Sign() < 0:
		return 0, usagef("N is %.40s; there is none below 0", args[0])
	case n.Cmp(big.NewInt(maxN)) > 0:
		return 0, usagef("N is %.40s; at most %d, because %s", args[0], maxN, why)
	}
	return int(n.Int64()), nil
}

// compute starts the job for n and runs all jobs until it is completed.
func compute(ctx context.Context, url string, n int) (*big.Int, error) {
	store, err := redisstore.Open(ctx, redisstore.Config{URL: url, Embedded: embedded.Start})
	if err != nil {
		return nil, err
	}
	defer store.Close()
	engine, err := worker.New(worker.Config{
		Store: store, Workers: []worker.Worker{&Fib{}}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}
	h, err := client.New(store).Start(ctx, job.Single(&Fib{N: n}, ""))
	if err != nil {
		return nil, err
	}
	var info *job.Info
	if err := engine.RunWhile(ctx, func(ctx context.Context) (err error) {
		info, err = h.Wait(ctx)
		return err
	}); err != nil {
		return nil, err
	}
	result := new(big.Int)
	if ok, err := h.Read(ctx, "out", result); err != nil || !ok {
		return nil, errors.Join(err, fmt.Errorf("job %s is %s and wrote no number", info.ID, info.Status))
	}
	return result, nil
}
