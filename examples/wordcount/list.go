package main

import (
	"context"
	"fmt"
	"os"

	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/worker"
)

// How much goes into one batch, and how many batches into one commit. The bytes of
// paths are bounded too, since a path may be 4 KiB and a message has its limit.
const (
	batchFiles   = 256
	batchBytes   = 4 << 20
	batchPaths   = 128 << 10
	commitEvery  = 64
	commitPaths  = 1 << 20
	listCursorAt = "cursor"
)

// Batch is a number of files to count.
type Batch struct {
	Files []File `json:"files"`
}

// List finds the files to count. Paths are absolute; each is a file or a directory.
type List struct {
	Paths []Path
	Files port.Out[Batch]
}

// JobType implements job.Typer.
func (*List) JobType() string { return "wordcount/list" }

// Cursor is how far List got: with the argument Arg to the file After, both included in
// Files and Bytes. Everything up to there is committed.
type Cursor struct {
	Arg   int   `json:"arg"`
	After Path  `json:"after,omitempty"`
	Files int64 `json:"files"`
	Bytes int64 `json:"bytes"`
}

// Run walks from the cursor on, so that a walk that was killed goes on after the last
// file that it had committed.
func (l *List) Run(ctx context.Context, run *worker.Run) error {
	w := listing{run: run, out: l.Files}
	if _, err := run.State().Get(listCursorAt, &w.cursor); err != nil {
		return err
	}
	for w.cursor.Arg < len(l.Paths) {
		if err := w.argument(ctx, string(l.Paths[w.cursor.Arg])); err != nil {
			return err
		}
	}
	return w.save()
}

// listing is the work of one run of List.
type listing struct {
	run    *worker.Run
	out    port.Out[Batch]
	cursor Cursor // of all files in batches, the one begun included

	batch       []File
	bytes       int64
	paths       int // bytes of the paths in batch
	sent        int // batches since the last commit
	uncommitted int // bytes of their paths
}

// argument lists what is left of one path.
func (w *listing) argument(ctx context.Context, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return cannotRead(path, err)
	}
	next := Cursor{Arg: w.cursor.Arg + 1}
	if info.Mode().IsRegular() {
		if err := w.add(File{Path(path), info.Size()}, next); err != nil {
			return err
		}
	} else {
		for f, err := range walk(path, string(w.cursor.After)) {
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				return err
			}
			if err := w.add(f.File, Cursor{Arg: w.cursor.Arg, After: Path(f.rel)}); err != nil {
				return err
			}
		}
	}
	w.cursor.Arg, w.cursor.After = next.Arg, ""
	return nil
}

// add puts a file into the batch; at is the place in the walk that follows.
func (w *listing) add(f File, at Cursor) error {
	full := len(w.batch) >= batchFiles || w.bytes+f.Size > batchBytes || w.paths+len(f.Path) > batchPaths
	if full && len(w.batch) > 0 {
		if err := w.send(); err != nil {
			return err
		}
	}
	w.batch = append(w.batch, f)
	w.bytes += f.Size
	w.paths += len(f.Path)
	w.cursor = Cursor{at.Arg, at.After, w.cursor.Files + 1, w.cursor.Bytes + f.Size}
	return nil
}

// send writes the batch, and commits when there is enough to commit.
func (w *listing) send() error {
	if err := w.out.Write(Batch{w.batch}); err != nil {
		return err
	}
	w.sent++
	w.uncommitted += w.paths
	w.batch, w.bytes, w.paths = w.batch[:0], 0, 0
	if w.sent < commitEvery && w.uncommitted < commitPaths {
		return nil
	}
	if err := w.run.State().Set(listCursorAt, w.cursor); err != nil {
		return err
	}
	w.sent, w.uncommitted = 0, 0
	if err := w.run.Checkpoint(); err != nil {
		return fmt.Errorf("committing the files found so far: %w", err)
	}
	return nil
}

// save writes what is left, for the commit that ends the run.
func (w *listing) save() error {
	if len(w.batch) > 0 {
		if err := w.out.Write(Batch{w.batch}); err != nil {
			return err
		}
	}
	return w.run.State().Set(listCursorAt, w.cursor)
}
