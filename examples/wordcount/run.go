package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
)

// Exit codes.
const (
	exitOK      = 0
	exitError   = 1
	exitUsage   = 2
	exitStopped = 130
)

// usageError is the user's to correct before anything is started.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// options are what the command line says.
type options struct {
	redis, tree, output string
	named               bool // tree was made up here
	started             bool // there is something to continue
	earlier             bool // it was counted before
	told                bool // the error was written already
	top                 int
	paths               []Path
}

const help = `Count the words of files, and of all regular files in directories, hidden ones too.

A word is a longest run of letters and digits, in lower case; one longer than 256 KiB
is listed by its beginning and its SHA-256. Files that are not UTF-8 are skipped. A
file that is named twice is counted twice.

The count is a graph of durable jobs in Redis. With --redis and --tree, the same
command continues a count that was interrupted, however it ended, and prints the result
again when it is there. All processes that share a Redis must see the same files.`

// Main runs the program and returns its exit code. When ctx ends it stops gracefully.
func Main(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var o options
	cmd := &cobra.Command{
		Use:               "wordcount [flags] PATH...",
		Long:              help,
		Example:           "  wordcount --top 20 .\n  wordcount --redis redis://localhost:6379 --tree books-2026 -o json ~/books",
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		Args:              cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(cmd, args); err != nil {
				return err
			}
			return o.run(cmd.Context(), stdout, stderr)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&o.redis, "redis", "", "`URL` of the Redis that keeps the jobs (default: $WEIR_REDIS_URL, else one in this process)")
	flags.StringVar(&o.tree, "tree", "", "`NAME` of the count, to continue it under; needs a Redis (default: a new count)")
	flags.IntVar(&o.top, "top", 10, "list the `N` most frequent words")
	flags.StringVarP(&o.output, "output", "o", "table", "`FORMAT` of the result: table or json")
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return usagef("%w; see wordcount --help", err)
	})
	cmd.SetArgs(append([]string{}, args...)) // nil would mean those of the process
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)

	err := cmd.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	if o.told {
		return exitError
	}
	if ctx.Err() != nil && !errors.As(err, new(usageError)) {
		fmt.Fprintln(stderr, "wordcount: stopped; "+o.howToContinue())
		return exitStopped
	}
	o.tell(stderr, err)
	if errors.As(err, new(usageError)) || errors.Is(err, job.ErrName) {
		return exitUsage
	}
	return exitError
}

// tell writes an error on one line, and what to do after it.
func (o *options) tell(stderr io.Writer, err error) {
	message := strings.ReplaceAll(err.Error(), "\n", "; ")
	if o.started && o.redis != "" && !errors.Is(err, errAgain) && !errors.Is(err, job.ErrNotFound) {
		message += "; " + o.howToContinue()
	}
	fmt.Fprintln(stderr, "wordcount: "+term.Clean(message))
}

// check refuses what cannot work.
func (o *options) check(cmd *cobra.Command, args []string) (err error) {
	switch {
	case o.output != "table" && o.output != "json":
		return usagef("--output %q is not known; use table or json", o.output)
	case o.top < 1:
		return usagef("--top %d lists nothing; use 1 or more", o.top)
	case cmd.Flags().Changed("tree") && o.tree == "":
		return usagef("--tree is empty; give the count a name, or leave --tree out for a new count")
	case cmd.Flags().Changed("redis") && o.redis == "":
		return usagef("--redis is empty; give the URL of a Redis, or leave --redis out")
	case len(args) == 0:
		return usagef("no PATH to count; name files and directories, as in: wordcount .")
	}
	if !cmd.Flags().Changed("redis") {
		o.redis = os.Getenv("WEIR_REDIS_URL")
	}
	if o.redis == "" && o.tree != "" {
		return usagef("--tree needs a Redis that outlives the program: give --redis URL or set WEIR_REDIS_URL")
	}
	if o.redis != "" && o.tree == "" {
		o.tree = "wordcount-" + strings.ToLower(rand.Text()[:10])
		o.named = true
	}
	o.paths, err = checkPaths(args)
	return err
}

// howToContinue says what to do after a count that did not end.
func (o *options) howToContinue() string {
	switch {
	case o.redis == "":
		return "nothing was kept; a count that can be continued needs --redis URL"
	case o.named:
		return "to continue, add --tree " + o.tree
	default:
		return "the same command continues it"
	}
}

// run counts, and reports what was counted.
func (o *options) run(ctx context.Context, stdout, stderr io.Writer) (err error) {
	began := time.Now()
	store, err := redisstore.Open(ctx, redisstore.Config{URL: o.redis})
	if err != nil {
		return err
	}
	defer func() {
		// Closing would wait for an engine that does not end.
		if !errors.As(err, new(abandoned)) {
			_ = store.Close()
		}
	}()
	h, err := o.start(ctx, job.NewClient(store))
	if err != nil {
		return err
	}
	o.started = true
	warn := newWarnings(stderr)
	var watch watcher = silent{}
	if o.output == "table" {
		watch = newProgress(job.NewClient(store), h, stderr, warn)
	}
	err = finish(ctx, store, h, watch, warn, func(err error) {
		o.told = true
		o.tell(stderr, err)
	})
	if err != nil {
		return err
	}
	result, err := readResult(ctx, h)
	if err != nil {
		return err
	}
	result.Top = result.Top[:min(o.top, len(result.Top))]
	if o.output == "json" {
		return writeJSON(stdout, result)
	}
	tree, err := h.Tree(ctx)
	if err != nil {
		return err
	}
	note := "counted earlier"
	if !o.earlier {
		note = time.Since(began).Round(100 * time.Millisecond).String()
	}
	return writeTable(stdout, term.StyleOf(stdout), result, tree, note)
}
