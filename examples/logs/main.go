// Command logs counts the requests in access logs of web servers, through a graph of durable jobs:
//
//	read (a job for each file) -> parse (4 jobs) -> statuses, paths, odd
//
// With -redis, a count that was killed goes on where it stopped when it is started again, and counts every line once.
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/draw"
	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/redisstore/embedded"
	"github.com/weirworks/weir/worker"
)

// A line longer than chunkBytes counts as several; so many messages wait at a port before those who feed it rest.
const chunkBytes, waiting = 64 << 10, 16

func main() {
	url := flag.String("redis", os.Getenv("WEIR_REDIS_URL"), "`URL` of the Redis that keeps the jobs, else $WEIR_REDIS_URL; without both, one runs in this process")
	tree := flag.String("tree", "logs", "`NAME` of the count: the same command continues it, or prints its result again")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "Count requests by status and path: logs [flags] FILE...")
		flag.PrintDefaults()
	}
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	if err := run(ctx, *url, *tree, flag.Args(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "logs:", err)
		os.Exit(1)
	}
}

// run counts, or takes up the count of that name where it stopped, and writes the result.
func run(ctx context.Context, url, tree string, files []string, w io.Writer) error {
	if len(files) == 0 {
		return errors.New("name files, as in logs access.log")
	}
	for i, file := range files {
		if _, err := os.Stat(file); err != nil {
			return fmt.Errorf("%w; check the path, and give flags before files", err)
		}
		files[i], _ = filepath.Abs(file)
	}
	store, err := redisstore.Open(ctx, redisstore.Config{URL: url, Embedded: embedded.Start})
	if err != nil {
		return err
	}
	defer store.Close()
	h, err := client.New(store).Start(ctx, newGraph(files), job.Alias(tree))
	if err != nil {
		return err
	}
	engine, err := worker.New(worker.Config{Store: store, Workers: []worker.Worker{&Read{}, &Parse{}, &Tally{}}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	if err := engine.RunWhile(ctx, func(ctx context.Context) error {
		_, retrying := h.RetryFailed(ctx) // if it failed earlier
		_, waiting := h.Wait(ctx)
		return cmp.Or(retrying, waiting)
	}); err != nil {
		return err
	}
	return report(ctx, h, w)
}

// tables are the jobs that count.
var tables = []string{"statuses", "paths", "odd"}

// newGraph wires the workers.
func newGraph(files []string) *graph.Graph {
	g := graph.New("logs")
	parse := graph.Add(g, "parse", &Parse{}, graph.Instances(4))
	for i, file := range files {
		read := graph.Add(g, fmt.Sprintf("read_%d", i+1), &Read{File: file})
		graph.Connect(read.Chunks, parse.Chunks, graph.Limit(waiting))
	}
	for i, out := range []port.Out[map[string]int64]{parse.Statuses, parse.Paths, parse.Odd} {
		tally := graph.Add(g, tables[i], &Tally{})
		graph.Connect(out, tally.Counts, graph.Limit(waiting))
		graph.Export(g, tables[i], tally.Table)
	}
	return g
}

// report writes the tables, which stay where they are for the next time, and the graph that made them.
func report(ctx context.Context, h *client.Handle, w io.Writer) error {
	for _, name := range tables {
		var table []Row
		raws, err := h.Peek(ctx, name, 1)
		if err != nil || len(raws) == 0 || json.Unmarshal(raws[0], &table) != nil {
			return cmp.Or(err, errors.New("there is no result: it was terminated, or somebody took it; use another -tree"))
		}
		fmt.Fprintln(w, name)
		for _, r := range table {
			fmt.Fprintf(w, "  %-32.70q %8d %s\n", r.Key, r.Lines, strings.Repeat("█", int(40*r.Lines/table[0].Lines)))
		}
	}
	jobs, err := h.Tree(ctx)
	return cmp.Or(err, draw.Terminal(w, draw.Jobs(jobs), draw.TerminalOptions{}))
}

// Read reads a file, as chunks of whole lines.
type Read struct {
	File   string
	Chunks port.Out[string]
}

// Run reads on from where the last commit was, and rests whenever the parsers have enough to do.
func (r *Read) Run(_ context.Context, run *worker.Run) error {
	var offset int64
	if _, err := run.State().Get("offset", &offset); err != nil {
		return err
	}
	f, err := os.Open(r.File)
	if err != nil {
		return err
	}
	defer f.Close()
	for n, text := 1, make([]byte, chunkBytes); err == nil; n++ {
		size, ended := f.ReadAt(text, offset)
		if ended == nil { // else these are the last lines
			size = cmp.Or(bytes.LastIndexByte(text, '\n')+1, chunkBytes)
		}
		offset += int64(size)
		err = cmp.Or(r.Chunks.Write(strings.ToValidUTF8(string(text[:size]), "\uFFFD")), run.State().Set("offset", offset))
		if err == nil && n%8 == 0 {
			err = run.Checkpoint() // worker.ErrFull among others: the job rests until there is room
		}
		if err == nil && errors.Is(ended, io.EOF) {
			return nil
		}
		err = cmp.Or(err, ended)
	}
	return err
}

// entry is a line of the common or the combined format.
var entry = regexp.MustCompile(`^\S+ \S+ \S+ \[[^\]]+\] "(?:[A-Z]+ )?([^?" ]*)[^"]*" ([1-5]\d\d) (?:\d+|-)(?: .*)?$`)

// Parse counts the lines of chunks. Those that are not understood count as odd, under the first of them in the chunk.
type Parse struct {
	Chunks               port.In[string]
	Statuses, Paths, Odd port.Out[map[string]int64]
}

// WorkerOptions implements worker.Configured.
func (*Parse) WorkerOptions() worker.Options { return worker.Options{Pure: true} }

// Run parses what there is.
func (p *Parse) Run(context.Context, *worker.Run) error {
	for chunk, err := range p.Chunks.All() {
		if err != nil {
			return err
		}
		statuses, paths, odd, first := map[string]int64{}, map[string]int64{}, map[string]int64{}, ""
		for line := range strings.Lines(chunk) {
			if m := entry.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
				statuses[m[2]]++
				paths[clip(m[1])]++
			} else if line = strings.TrimSpace(line); line != "" {
				first = cmp.Or(first, clip(line))
				odd[first]++
			}
		}
		if err := cmp.Or(p.Statuses.Write(statuses), p.Paths.Write(paths), p.Odd.Write(odd)); err != nil {
			return err
		}
	}
	return nil
}

func clip(s string) string { return cmp.Or(strings.ToValidUTF8(s[:min(len(s), 200)], ""), "-") }

// Row is a key, and how many lines have it.
type Row struct {
	Key   string
	Lines int64
}

// Tally adds counts up. Each key is an entry of its state: a run reads and writes only those that it is given.
type Tally struct {
	Counts port.In[map[string]int64]
	Table  port.Out[[]Row] // the most frequent keys
}

// WorkerOptions implements worker.Configured.
func (*Tally) WorkerOptions() worker.Options { return worker.Options{Pure: true} }

// Run adds what has come, and writes the table when nothing more can come.
func (t *Tally) Run(_ context.Context, run *worker.Run) error {
	fresh := map[string]int64{}
	for counts, err := range t.Counts.All() {
		if err != nil {
			return err
		}
		for key, n := range counts {
			fresh[key] += n
		}
		if len(fresh) > 4000 {
			break // a commit has room for 8,000 keys; while messages wait the job runs again
		}
	}
	known, err := run.State().GetMany(slices.Collect(maps.Keys(fresh)))
	for key, n := range fresh {
		err = cmp.Or(err, run.State().Set(key, n+number(known[key])))
	}
	if err != nil || !t.Counts.Done() {
		return err
	}
	all, err := run.State().All()
	table := []Row{}
	for key, raw := range all {
		table = append(table, Row{key, number(raw)})
	}
	slices.SortFunc(table, func(a, b Row) int { return cmp.Or(cmp.Compare(b.Lines, a.Lines), cmp.Compare(a.Key, b.Key)) })
	return cmp.Or(err, t.Table.Write(table[:min(len(table), 10)]))
}

// number reads a count of the state; of a key that is not there it is zero.
func number(raw json.RawMessage) int64 {
	n, _ := strconv.ParseInt(string(raw), 10, 64)
	return n
}
