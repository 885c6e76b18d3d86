package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
)

// Exit codes.
const (
	exitOK    = 0
	exitError = 1
	exitUsage = 2
)

// maxTop keeps the result in one message.
const maxTop = 100

// usageError is the user's to correct before anything is started.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// options are what the command line says.
type options struct {
	redis, tree, output string
	named               bool // tree was made up here
	top                 int
	files               []File
}

const help = `Analyse access logs of web servers: requests by status, bytes by hour, the most
frequent and the slowest paths and clients.

Lines are in the common or the combined format; the seconds that a request took may
follow. Lines that are neither are counted and the first of them shown. Paths count
without their query, and paths and clients of more than 200 bytes by their beginning.

The analysis is a graph of durable jobs in Redis. With --redis and --tree, the same
command continues one that was interrupted, however it ended, and prints the result
again when it is there. Lines appended to a file after the beginning are left out.`

// Main runs the program and returns its exit code. When ctx ends it stops gracefully.
func Main(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var o options
	cmd := &cobra.Command{
		Use:               "logs [flags] FILE...",
		Long:              help,
		Example:           "  logs --top 5 access.log\n  logs --redis redis://localhost:6379 --tree week-7 -o json access.log.1 access.log",
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		Args:              cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(cmd, args); err != nil {
				return err
			}
			return o.run(cmd.Context(), stdout)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&o.redis, "redis", "", "`URL` of the Redis that keeps the jobs (default: $WEIR_REDIS_URL, else one in this process)")
	flags.StringVar(&o.tree, "tree", "", "`NAME` of the analysis, to continue it under; needs a Redis (default: a new one)")
	flags.IntVar(&o.top, "top", 10, "list the first `N` paths and clients, at most 100")
	flags.StringVarP(&o.output, "output", "o", "table", "`FORMAT` of the result: table or json")
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usagef("%w; see logs --help", err) })
	cmd.SetArgs(append([]string{}, args...)) // nil would mean those of the process
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)

	err := cmd.ExecuteContext(ctx)
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, new(usageError)) || errors.Is(err, job.ErrName):
		fmt.Fprintln(stderr, "logs: "+oneLine(err))
		return exitUsage
	case ctx.Err() != nil:
		fmt.Fprintln(stderr, "logs: stopped; "+o.howToContinue())
	default:
		fmt.Fprintln(stderr, "logs: "+oneLine(err))
	}
	return exitError
}

func oneLine(err error) string { return term.Clean(strings.ReplaceAll(err.Error(), "\n", "; ")) }

// howToContinue says what to do after an analysis that did not end.
func (o *options) howToContinue() string {
	switch {
	case o.redis == "":
		return "nothing was kept; an analysis that can be continued needs --redis URL"
	case o.named:
		return "to continue, add --tree " + o.tree
	default:
		return "the same command continues it"
	}
}

// check refuses what cannot work.
func (o *options) check(cmd *cobra.Command, args []string) (err error) {
	switch {
	case o.output != "table" && o.output != "json":
		return usagef("--output %q is not known; use table or json", o.output)
	case o.top < 1 || o.top > maxTop:
		return usagef("--top %d: use 1 to %d", o.top, maxTop)
	case len(args) == 0:
		return usagef("no FILE to analyse; name logs, as in: logs access.log")
	}
	if !cmd.Flags().Changed("redis") {
		o.redis = os.Getenv("WEIR_REDIS_URL")
	}
	if o.redis == "" && o.tree != "" {
		return usagef("--tree needs a Redis that outlives the program: give --redis URL or set WEIR_REDIS_URL")
	}
	if o.redis != "" && o.tree == "" {
		o.tree, o.named = "logs-"+strings.ToLower(rand.Text()[:10]), true
	}
	for _, arg := range args {
		f, err := fileOf(arg)
		if err != nil {
			return err
		}
		o.files = append(o.files, f)
	}
	return nil
}

// fileOf looks at a file that is to be analysed.
func fileOf(arg string) (File, error) {
	path, err := filepath.Abs(arg)
	if err != nil {
		return File{}, err
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return File{}, usagef("%s does not exist; check the path", arg)
	case err != nil:
		return File{}, usageError{err}
	case !info.Mode().IsRegular():
		return File{}, usagef("%s is not a regular file; name logs, as in: logs access.log", arg)
	case !utf8.ValidString(path):
		return File{}, usagef("the name %q is not UTF-8; link the file under another name", path)
	}
	return File{path, info.Size()}, nil
}

// run analyses, and writes the result.
func (o *options) run(ctx context.Context, stdout io.Writer) error {
	store, err := redisstore.Open(ctx, redisstore.Config{URL: o.redis})
	if err != nil {
		return err
	}
	defer store.Close()
	h, err := o.start(ctx, job.NewClient(store))
	if err != nil {
		return err
	}
	result, err := finish(ctx, store, h)
	if err != nil {
		return err
	}
	if o.output == "json" {
		return writeJSON(stdout, result)
	}
	tree, err := h.Tree(ctx)
	if err != nil {
		return err
	}
	return writeTable(stdout, term.StyleOf(stdout), result, tree)
}
