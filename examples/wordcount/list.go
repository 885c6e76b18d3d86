package main

import (
	"cmp"
	"context"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/worker"
)

const (
	batchBytes  = 2 << 20 // of files in a batch: bounds the work that a killed process repeats
	batchPieces = 100
	commitEvery = 64 // batches that List writes in one commit
)

// Piece is a part of a file.
type Piece struct {
	Path     string
	From, To int64
}

// List finds the files to count, and cuts large ones into pieces.
type List struct {
	Paths   []string // absolute, each a file or a directory
	Batches port.Out[[]Piece]
	Found   port.Out[Result]
}

// listing is how far List got: all files of the arguments before Arg, and in that one up to
// and with Path, are in batches.
type listing struct {
	Arg   int
	Path  string
	Found Result
	batch []Piece
	bytes int64
}

// Run walks from where the last commit was on, so that nothing is listed twice.
func (l *List) Run(ctx context.Context, run *worker.Run) error {
	var w listing
	if _, err := run.State().Get("listing", &w); err != nil {
		return err
	}
	sent := 0
	send := func() error {
		defer func() { w.batch, w.bytes, sent = nil, 0, sent+1 }()
		return l.Batches.Write(w.batch)
	}
	walk := func(path string, d fs.DirEntry, err error) error {
		if err = cmp.Or(err, ctx.Err()); err != nil || !d.Type().IsRegular() || !after(path, w.Path) {
			return err
		}
		err = w.add(path, send)
		if err != nil || sent < commitEvery {
			return err
		}
		if err := send(); err != nil {
			return err
		}
		sent = 0
		return cmp.Or(run.State().Set("listing", w), run.Checkpoint())
	}
	for ; w.Arg < len(l.Paths); w.Arg, w.Path = w.Arg+1, "" {
		if err := filepath.WalkDir(l.Paths[w.Arg], walk); err != nil {
			return err
		}
	}
	return cmp.Or(send(), l.Found.Write(w.Found))
}

// after tells whether a walk comes to one path later than to another.
func after(path, other string) bool {
	const slash = string(filepath.Separator)
	return slices.Compare(strings.Split(path, slash), strings.Split(other, slash)) > 0
}

// add puts a file into batches, of which full ones are sent.
func (w *listing) add(path string, send func() error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	head, err := io.ReadAll(io.LimitReader(f, 512))
	if err != nil {
		return err
	}
	if !strings.HasPrefix(http.DetectContentType(head), "text/") || !utf8.ValidString(path) {
		w.Found.Skipped++
		return nil
	}
	w.Path, w.Found.Files, w.Found.Bytes = path, w.Found.Files+1, w.Found.Bytes+info.Size()
	for from := int64(0); from < info.Size(); from += batchBytes {
		piece := Piece{path, from, min(from+batchBytes, info.Size())}
		if len(w.batch) == batchPieces || w.bytes+piece.To-from > batchBytes {
			if err := send(); err != nil {
				return err
			}
		}
		w.batch, w.bytes = append(w.batch, piece), w.bytes+piece.To-from
	}
	return nil
}
