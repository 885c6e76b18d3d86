package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/worker"
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

const help = `Add whole numbers of any size with two durable jobs.

A parent makes a summing child, sends it the numbers and, on another port, the word
that they are all there; it sleeps until the child has written the sum, and passes it on.`

// Main runs the program and returns its exit code.
func Main(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var url string
	cmd := &cobra.Command{
		Use:               "sumflow [flags] NUMBER...",
		Long:              help,
		Example:           "  sumflow 5 6\n  sumflow --redis redis://localhost:6379 100000000000000000000 -1",
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		Args:              cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			numbers, err := parse(args)
			if err != nil {
				return err
			}
			if !cmd.Flags().Changed("redis") {
				url = os.Getenv("WEIR_REDIS_URL")
			}
			sum, err := add(cmd.Context(), url, numbers)
			if err == nil {
				_, err = fmt.Fprintln(stdout, sum)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&url, "redis", "", "`URL` of the Redis that keeps the jobs (default: $WEIR_REDIS_URL, else one in this process)")
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usagef("%w; see sumflow --help", err) })
	cmd.SetArgs(guard(args))
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)

	err := cmd.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	code := exitError
	if errors.As(err, new(usageError)) {
		code = exitUsage
	} else if ctx.Err() != nil {
		err = errors.New("stopped")
	}
	fmt.Fprintln(stderr, "sumflow: "+term.Clean(strings.ReplaceAll(err.Error(), "\n", "; ")))
	return code
}

// guard keeps negative numbers from being taken for flags: with a space in front they are
// not, and parse takes it away.
func guard(args []string) []string {
	guarded := []string{}
	for _, arg := range args {
		if len(arg) > 1 && arg[0] == '-' && arg[1] >= '0' && arg[1] <= '9' {
			arg = " " + arg
		}
		guarded = append(guarded, arg)
	}
	return guarded
}

// parse reads the numbers.
func parse(args []string) ([]*big.Int, error) {
	if len(args) == 0 {
		return nil, usagef("no NUMBER to add; give whole numbers, as in: sumflow 5 6")
	}
	var numbers []*big.Int
	for _, arg := range args {
		arg = strings.TrimPrefix(arg, " ")
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
	store, err := redisstore.Open(ctx, redisstore.Config{URL: url})
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
	h, err := job.NewClient(store).Start(ctx, job.Single(&Flow{Numbers: numbers}, ""))
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
