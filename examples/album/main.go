// Command album makes thumbnails of the pictures of a folder, and an index of them. The
// graph of durable jobs grows with its work: for each picture, make spawns a graph of its
// own, whose jobs resize in parallel and are joined.
//
//	list -> make -> index
//	         ├─ 000001: resize to 160, resize to 640, … -> join
//	         └─ 000002: …
//
// A picture that cannot be read becomes a letter to its own join, and stops no other. With
// -redis and -tree an album that was interrupted goes on where it stopped.
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
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9/logging"

	"github.com/weirworks/weir/draw"
	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/redisstore/embedded"
	"github.com/weirworks/weir/worker"
)

const usage = `Make an album of the pictures (GIF, JPEG, PNG) of a folder: JPEG thumbnails of several
widths, index.html and index.json, in the folder OUT. A picture that cannot be read is told
of, stops no other, and makes the exit code 1.

Usage: album [flags] FOLDER OUT

  album ~/pictures /tmp/album
  album -redis redis://localhost:6379 -tree album ~/pictures /tmp/album    # kill it, start it again

`

// options are what the command line says.
type options struct {
	redis, tree string
	widths      []int
	folder, out string
}

func main() {
	var o options
	flag.StringVar(&o.redis, "redis", os.Getenv("WEIR_REDIS_URL"), "`URL` of the Redis that keeps the jobs, else $WEIR_REDIS_URL; without both, one runs in this process")
	flag.StringVar(&o.tree, "tree", "", "`NAME` of the album: the same command continues it; needs a Redis")
	widths := flag.String("widths", "160,640", "`WIDTHS` of the thumbnails in pixels, separated by commas")
	flag.Usage = func() { fmt.Fprint(flag.CommandLine.Output(), usage); flag.PrintDefaults() }
	flag.Parse()

	logging.Disable() // the Redis library prints what it also returns as an error
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	err := o.check(*widths, flag.Args())
	if err == nil {
		err = o.run(ctx, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "album:", err)
		os.Exit(1)
	}
}

// check refuses what cannot work, and makes the folder that the album goes to.
func (o *options) check(widths string, args []string) (err error) {
	for text := range strings.SplitSeq(widths, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 10_000 {
			return fmt.Errorf("-widths has %q; use numbers from 1 to 10000, as in 160,640", text)
		}
		o.widths = append(o.widths, n)
	}
	slices.Sort(o.widths)
	o.widths = slices.Compact(o.widths)
	switch {
	case len(o.widths) > 8:
		return fmt.Errorf("-widths has %d widths; give at most 8", len(o.widths))
	case len(args) != 2:
		return errors.New("give a FOLDER of pictures and where the album goes, as in album ~/pictures /tmp/album")
	case o.redis == "" && o.tree != "":
		return errors.New("-tree needs a Redis that outlives the program: give -redis URL")
	}
	o.folder, err = filepath.Abs(args[0])
	if err != nil {
		return err
	}
	if o.out, err = filepath.Abs(args[1]); err != nil {
		return err
	}
	if o.folder == o.out {
		return errors.New("the album cannot go into the folder of its pictures; give another OUT")
	}
	if _, err := os.ReadDir(o.folder); err != nil {
		return fmt.Errorf("%w; give the folder of the pictures", err)
	}
	return os.MkdirAll(o.out, 0o755)
}

// newGraph wires the workers.
func (o *options) newGraph() *graph.Graph {
	g := graph.New("album")
	list := graph.Add(g, "list", &List{Folder: o.folder})
	work := graph.Add(g, "make", &Make{Folder: o.folder, Out: o.out, Widths: o.widths})
	index := graph.Add(g, "index", &Index{Title: filepath.Base(o.folder), Out: o.out})
	graph.Connect(list.Pictures, work.Pictures)
	graph.Connect(work.Entries, index.Entries)
	graph.Export(g, "summary", index.Summary)
	return g
}

// run makes the album, or takes up the one of that name where it stopped, and says what came of it.
func (o *options) run(ctx context.Context, w io.Writer) error {
	store, err := redisstore.Open(ctx, redisstore.Config{URL: o.redis, Embedded: embedded.Start})
	if err != nil {
		return err
	}
	defer store.Close()
	name := cmp.Or(o.tree, fmt.Sprintf("album-%d", time.Now().UnixNano()))
	h, err := job.NewClient(store).Start(ctx, o.newGraph(), job.Alias(name))
	if err != nil {
		return err
	}
	engine, err := worker.New(worker.Config{
		Store: store, Workers: []worker.Worker{&List{}, &Make{}, &Resize{}, &Join{}, &Index{}},
		Logger: slog.New(slog.DiscardHandler), // the summary tells of broken pictures
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

// report says what came of the album, and draws the jobs that made it.
func (o *options) report(ctx context.Context, h *job.Handle, w io.Writer) error {
	raws, err := h.Peek(ctx, "summary", 1) // it stays there for the next time
	if err != nil || len(raws) == 0 {
		return cmp.Or(err, errors.New("there is no summary: the album was terminated; make it again"))
	}
	var s Summary
	if err := json.Unmarshal(raws[0], &s); err != nil {
		return err
	}
	fmt.Fprintf(w, "%d pictures in %s\n", s.Pictures, filepath.Join(o.out, pageName))
	for _, b := range s.Broken {
		fmt.Fprintf(w, "%q: %s\n", b.File, b.Error)
	}
	tree, err := h.Tree(ctx)
	if second := slices.IndexFunc(tree, func(i *job.Info) bool { return i.Name == (Picture{Number: 2}).name() }); second > 0 {
		tree = tree[:second] // the graph of the first picture is like all others
	}
	if err = cmp.Or(err, draw.Terminal(w, draw.Jobs(tree), draw.TerminalOptions{})); err != nil {
		return err
	}
	if len(s.Broken) > 0 {
		return fmt.Errorf("%d of %d pictures are not in the album", len(s.Broken), len(s.Broken)+s.Pictures)
	}
	return nil
}
