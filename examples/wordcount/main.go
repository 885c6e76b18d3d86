// Command wordcount counts the words of files and directories by a graph of durable jobs:
//
//	list -> split (4 jobs) -> count (4 jobs) -> merge
//
// With -redis and -tree a count that was killed goes on where it stopped when it is
// started again, and every word is counted once.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/redis/go-redis/v9/logging"

	"github.com/weirworks/weir/draw"
	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/redisstore/embedded"
	"github.com/weirworks/weir/worker"
)

const usage = `Count the words of files, and of all regular files in directories, hidden ones too.

A word is a longest run of letters and digits, in lower case; of a very long one the first
256 bytes count. Files that do not begin like text are skipped. One that is named twice is
counted twice.

Usage: wordcount [flags] PATH...

  wordcount -top 20 .
  wordcount -redis redis://localhost:6379 -tree books ~/books    # kill it, start it again

`

// options are what the command line says.
type options struct {
	redis, tree string
	top         int
	json        bool
	paths       []string
}

func main() {
	var o options
	flag.StringVar(&o.redis, "redis", os.Getenv("WEIR_REDIS_URL"), "`URL` of the Redis that keeps the jobs, else $WEIR_REDIS_URL; without both, one runs in this process")
	flag.StringVar(&o.tree, "tree", "", "`NAME` of the count: the same command continues it, or prints its result again; needs a Redis")
	flag.IntVar(&o.top, "top", 10, "list the `N` most frequent words, 1 to 1000")
	flag.BoolVar(&o.json, "json", false, "print the result as JSON")
	flag.Usage = func() { fmt.Fprint(flag.CommandLine.Output(), usage); flag.PrintDefaults() }
	flag.Parse()
	o.paths = flag.Args()

	logging.Disable() // the Redis library prints what it also returns as an error
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	if err := o.run(ctx, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "wordcount:", err)
		os.Exit(1)
	}
}

// check refuses what cannot work, and makes the paths absolute.
func (o *options) check() error {
	switch {
	case o.top < 1 || o.top > 1000:
		return fmt.Errorf("-top %d: use 1 to 1000", o.top)
	case o.redis == "" && o.tree != "":
		return errors.New("-tree needs a Redis that outlives the program: give -redis URL")
	case len(o.paths) == 0:
		return errors.New("no PATH to count; name files and directories, as in wordcount ~/books")
	}
	for i, path := range o.paths {
		path, err := filepath.Abs(path)
		if err == nil {
			path, err = filepath.EvalSymlinks(path)
		}
		if err != nil {
			return fmt.Errorf("%w; check the path, and give flags before paths", err)
		}
		o.paths[i] = path
	}
	return nil
}

// newGraph wires the workers.
func newGraph(paths []string, top int) *graph.Graph {
	g := graph.New("wordcount")
	list := graph.Add(g, "list", &List{Paths: paths})
	split := graph.Add(g, "split", &Split{}, graph.Instances(4))
	count := graph.Add(g, "count", &Count{Top: top}, graph.Instances(4))
	merge := graph.Add(g, "merge", &Merge{Top: top})
	graph.Connect(list.Batches, split.Batches)
	graph.Connect(split.Pages, count.Pages)
	graph.Connect(list.Found, merge.Sums)
	graph.Connect(count.Sum, merge.Sums)
	graph.Export(g, "result", merge.Result)
	return g
}

// run starts the count, or takes up the one of that name where it stopped, and reports it.
func (o *options) run(ctx context.Context, stdout, stderr io.Writer) error {
	if err := o.check(); err != nil {
		return err
	}
	return o.count(ctx, stdout, stderr)
}

func (o *options) count(ctx context.Context, stdout, stderr io.Writer) error {
	began := time.Now()
	store, err := redisstore.Open(ctx, redisstore.Config{URL: o.redis, Embedded: embedded.Start})
	if err != nil {
		return err
	}
	defer store.Close()
	name := cmp.Or(o.tree, fmt.Sprintf("wordcount-%d", began.UnixNano()))
	h, err := job.NewClient(store).Start(ctx, newGraph(o.paths, o.top), job.Alias(name))
	if err != nil {
		return err
	}
	engine, err := worker.New(worker.Config{
		Store: store, Workers: []worker.Worker{&List{}, &Split{}, &Count{}, &Merge{}},
		Logger: slog.New(slog.DiscardHandler), // of a job that fails Wait tells
	})
	if err != nil {
		return err
	}
	err = engine.RunWhile(ctx, func(ctx context.Context) error {
		if _, err := h.RetryFailed(ctx); err != nil { // if it failed earlier
			return err
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		go showProgress(ctx, h, stderr)
		_, err := h.Wait(ctx)
		return err
	})
	switch {
	case err != nil && o.redis != "":
		return fmt.Errorf("%w; to go on, start it again with -tree %s", err, name)
	case err != nil:
		return err
	}
	return o.report(ctx, h, stdout, time.Since(began))
}

// showProgress writes a line every two seconds, until ctx ends.
func showProgress(ctx context.Context, h *job.Handle, w io.Writer) {
	for tick := time.NewTicker(2 * time.Second); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		tree, err := h.Tree(ctx)
		if err != nil && ctx.Err() == nil {
			fmt.Fprintln(w, err)
			continue
		}
		line := "read:"
		for _, i := range tree {
			for _, p := range i.Ports {
				if p.Dir == port.Input && p.Total > 0 {
					line += fmt.Sprintf(" %s %d/%d", i.Name, p.Total-p.Waiting, p.Total)
				}
			}
		}
		fmt.Fprintln(w, line)
	}
}

// report writes the result, which stays where it is for the next time.
func (o *options) report(ctx context.Context, h *job.Handle, w io.Writer, took time.Duration) error {
	raws, err := h.Peek(ctx, "result", 1)
	if err != nil || len(raws) == 0 {
		return cmp.Or(err, errors.New("there is no result: the count was terminated, or somebody took it; use another -tree"))
	}
	if o.json {
		_, err := fmt.Fprintf(w, "%s\n", raws[0])
		return err
	}
	var r Result
	if err := json.Unmarshal(raws[0], &r); err != nil {
		return err
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "%d words, %d different, in %d files (%.1f MB); %d files are no text — %s\n\n",
		r.Words, r.Distinct, r.Files, float64(r.Bytes)/1e6, r.Skipped, took.Round(100*time.Millisecond))
	for _, e := range r.Top {
		fmt.Fprintf(table, "%s\t%d\t%s\n", e.Word, e.Count, strings.Repeat("█", int(50*e.Count/r.Top[0].Count)))
	}
	tree, err := h.Tree(ctx)
	if err = cmp.Or(err, table.Flush()); err != nil {
		return err
	}
	fmt.Fprintln(w)
	return draw.Terminal(w, draw.Jobs(tree), draw.TerminalOptions{})
}
