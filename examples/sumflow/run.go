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
	"slices"
	"strings"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/redisstore/embedded"
	"github.com/weirworks/weir/worker"
)

// Exit codes.
const exitOK, exitError, exitUsage = 0, 1, 2

// usageError is the user's to correct.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

const help = `Add whole numbers of any size with two durable jobs.

A parent makes a summing child, sends it the numbers and, on another port, the word
that they are all there; it sleeps until the child has written the sum, and passes it on.

Usage: sumflow [--redis URL] NUMBER...

URL is that of the Redis that keeps the jobs: $WEIR_REDIS_URL without it, or one in this
process.

  sumflow 5 6
  sumflow --redis redis://localhost:6379 100000000000000000000 -1
`

// Main runs the program and returns its exit code.
func Main(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("sumflow", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	url := flags.String("redis", os.Getenv("WEIR_REDIS_URL"), "")
	// What begins like a negative number is none of the flags, nor is what follows it.
	if n := slices.IndexFunc(args, func(a string) bool { return len(a) > 1 && a[0] == '-' && a[1] >= '0' && a[1] <= '9' }); n >= 0 && args[max(n-1, 0)] != "--" {
		args = slices.Insert(slices.Clone(args), n, "--")
	}
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		_, _ = io.WriteString(stdout, help)
		return exitOK
	case err != nil:
		err = usagef("%w; see sumflow --help", err)
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
	fmt.Fprintln(stderr, "sumflow: "+strings.ReplaceAll(err.Error(), "\n", "; "))
	return code
}

func run(ctx context.Context, url string, args []string, stdout io.Writer) error {
	numbers, err := parse(args)
	if err != nil {
		return err
	}
	sum, err := add(ctx, url, numbers)
	if err == nil {
		_, err = fmt.Fprintln(stdout, sum)
	}
	return err
}

// parse reads the numbers.
func parse(args []string) ([]*big.Int, error) {
	if len(args) == 0 {
		return nil, usagef("no NUMBER to add; give whole numbers, as in: sumflow 5 6")
	}
	var numbers []*big.Int
	for _, arg := range args {
		n, ok := new(big.Int).SetString(arg, 10)
		if !ok {
			return nil, usagef("%.40q is not a whole number; give whole numbers, as in: sumflow 5 6", arg)
		}
		numbers = append(numbers, n)
	}
	return numbers, nil
}

// add starts the parent and runs both jobs until it is completed.
func add(ctx context.Context, url string, numbers []*big.Int) (*big.Int, error) {
	store, err := redisstore.Open(ctx, redisstore.Config{URL: url, Embedded: embedded.Start})
	if err != nil {
		return nil, err
	}
	defer store.Close()
	engine, err := worker.New(worker.Config{
		Store: store, Workers: []worker.Worker{&Flow{}, &Sum{}}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}
	h, err := client.New(store).Start(ctx, job.Single(&Flow{Numbers: numbers}, ""))
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
	sum := new(big.Int)
	if ok, err := h.Read(ctx, "out", sum); err != nil || !ok {
		return nil, errors.Join(err, fmt.Errorf("job %s is %s and wrote no sum", info.ID, info.Status))
	}
	return sum, nil
}
