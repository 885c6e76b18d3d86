// Command logs analyses web-server access logs through a graph of durable jobs:
//
//	read -> parse (k jobs) -> status, paths, hours, clients -> report
//	                       -> rejected ---------------------^
//
// Limits on the wires keep a file of any size from filling Redis. With -redis and -tree
// an analysis that was killed goes on where it stopped when it is started again, and every
// line is counted once.
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
	"runtime"
	"slices"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/redis/go-redis/v9/logging"

	"github.com/weirworks/weir/draw"
	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/redisstore/embedded"
	"github.com/weirworks/weir/worker"
)

const usage = `Analyse access logs of web servers: requests by status, bytes by hour, the most
frequent and the slowest paths and clients.

Lines are in the common or the combined format; the seconds that a request took may
follow. Lines that are neither are counted and the first of them shown. Paths count
without their query, and paths and clients of more than 200 bytes by their beginning. Lines
appended to a file after the beginning are left out.

Usage: logs [flags] FILE...

  logs -top 5 access.log
  logs -redis redis://localhost:6379 -tree week-7 access.log.1 access.log    # kill it, start it again

`

// How many messages may wait at a port before those who feed it rest: together some
// megabytes, however large the files are.
const (
	chunksWaiting  = 16
	batchesWaiting = 16
)

// options are what the command line says.
type options struct {
	redis, tree string
	top         int
	json        bool
	files       []File
}

func main() {
	var o options
	flag.StringVar(&o.redis, "redis", os.Getenv("WEIR_REDIS_URL"), "`URL` of the Redis that keeps the jobs, else $WEIR_REDIS_URL; without both, one runs in this process")
	flag.StringVar(&o.tree, "tree", "", "`NAME` of the analysis: the same command continues it, or prints its result again; needs a Redis")
	flag.IntVar(&o.top, "top", 10, "list the first `N` paths and clients, 1 to 100")
	flag.BoolVar(&o.json, "json", false, "print the result as JSON")
	flag.Usage = func() { fmt.Fprint(flag.CommandLine.Output(), usage); flag.PrintDefaults() }
	flag.Parse()

	logging.Disable() // the Redis library prints what it also returns as an error
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	if err := o.run(ctx, flag.Args(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "logs:", err)
		os.Exit(1)
	}
}

// check refuses what cannot work, and looks at the files.
func (o *options) check(args []string) error {
	switch {
	case o.top < 1 || o.top > 100:
		return fmt.Errorf("-top %d: use 1 to 100", o.top)
	case o.redis == "" && o.tree != "":
		return errors.New("-tree needs a Redis that outlives the program: give -redis URL")
	case len(args) == 0:
		return errors.New("no FILE to analyse; name logs, as in logs access.log")
	}
	for _, arg := range args {
		path, err := filepath.Abs(arg)
		if err != nil {
			return err
		}
		info, err := os.Stat(path)
		if err != nil {
			return fmt.Errorf("%w; check the path, and give flags before files", err)
		}
		if !info.Mode().IsRegular() || !utf8.ValidString(path) {
			return fmt.Errorf("%q is not a regular file with a name in UTF-8; name logs, as in logs access.log", arg)
		}
		o.files = append(o.files, File{path, info.Size()})
	}
	return nil
}

// newGraph wires the workers.
func newGraph(files []File, top int) *graph.Graph {
	g := graph.New("logs")
	read := graph.Add(g, "read", &Read{Files: files})
	parse := graph.Add(g, "parse", &Parse{}, graph.Instances(max(2, runtime.GOMAXPROCS(0))))
	rejected := graph.Add(g, "rejected", &Rejected{})
	graph.Connect(read.Chunks, parse.Chunks, graph.Limit(chunksWaiting))
	graph.Connect(parse.Rejected, rejected.In)
	count := func(name, by string) port.Out[Table] {
		tally := graph.Add(g, name, &Tally{By: by, Top: top})
		graph.Connect(parse.Records, tally.Records, graph.Limit(batchesWaiting))
		return tally.Table
	}
	statuses, paths := count("statuses", byStatus), count("paths", byPath)
	hours, clients := count("hours", byHour), count("clients", byClient)
	report := graph.Add(g, "report", &Report{})
	graph.Connect(statuses, report.Statuses)
	graph.Connect(paths, report.Paths)
	graph.Connect(hours, report.Hours)
	graph.Connect(clients, report.Clients)
	graph.Connect(rejected.Out, report.Rejected)
	graph.Export(g, "result", report.Result)
	return g
}

// run analyses, or takes up the analysis of that name where it stopped, and writes the result.
func (o *options) run(ctx context.Context, args []string, w io.Writer) error {
	if err := o.check(args); err != nil {
		return err
	}
	store, err := redisstore.Open(ctx, redisstore.Config{URL: o.redis, Embedded: embedded.Start})
	if err != nil {
		return err
	}
	defer store.Close()
	name := cmp.Or(o.tree, fmt.Sprintf("logs-%d", time.Now().UnixNano()))
	// A file may have grown since: same looks whether it is the analysis that is meant.
	h, err := job.NewClient(store).Start(ctx, newGraph(o.files, o.top), job.Alias(name), job.TakeExisting())
	if err == nil {
		err = o.same(ctx, h)
	}
	if err != nil {
		return err
	}
	engine, err := worker.New(worker.Config{
		Store: store, Workers: []worker.Worker{&Read{}, &Parse{}, &Rejected{}, &Tally{}, &Report{}},
		Logger: slog.New(slog.DiscardHandler), // of a job that fails Wait tells
	})
	if err != nil {
		return err
	}
	err = engine.RunWhile(ctx, func(ctx context.Context) error {
		if _, err := h.RetryFailed(ctx); err != nil { // if it failed earlier
			return err
		}
		_, err := h.Wait(ctx)
		return err
	})
	switch {
	case err != nil && o.redis != "":
		return fmt.Errorf("%w; to go on, start it again with -tree %s", err, name)
	case err != nil:
		return err
	}
	return o.report(ctx, h, w)
}

// same refuses a tree of that name, from earlier, that does something else.
func (o *options) same(ctx context.Context, h *job.Handle) error {
	tree, err := h.Tree(ctx)
	read, paths := Read{}, Tally{}
	for _, i := range tree {
		switch i.Name {
		case "read":
			err = cmp.Or(err, json.Unmarshal(i.Args, &read))
		case "paths":
			err = cmp.Or(err, json.Unmarshal(i.Args, &paths))
		}
	}
	if err == nil && (paths.Top != o.top || !slices.EqualFunc(read.Files, o.files, func(a, b File) bool { return a.Path == b.Path })) {
		err = fmt.Errorf("tree %s analyses something else; choose another -tree", o.tree)
	}
	return err
}

// report writes the result, which stays where it is for the next time.
func (o *options) report(ctx context.Context, h *job.Handle, w io.Writer) error {
	raws, err := h.Peek(ctx, "result", 1)
	if err != nil || len(raws) == 0 {
		return cmp.Or(err, errors.New("there is no result: the analysis was terminated, or somebody took it; use another -tree"))
	}
	if o.json {
		_, err := fmt.Fprintf(w, "%s\n", raws[0])
		return err
	}
	var r Result
	if err := json.Unmarshal(raws[0], &r); err != nil {
		return err
	}
	tree, err := h.Tree(ctx)
	return cmp.Or(err, r.write(w), draw.Terminal(w, draw.Jobs(tree), draw.TerminalOptions{}))
}
