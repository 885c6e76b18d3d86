package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"

	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/worker"
)

const (
	// flushWeight bounds the words held in memory, and with them the size of a commit:
	// 4 MiB are some 200,000 words.
	flushWeight = 4 << 20
	// flushRead bounds the work that a killed process loses, and how old the progress is.
	flushRead = 16 << 20
	// wholeFile is the size up to which a file is read at once.
	wholeFile = 1 << 20
	// pieceSize is how much of a file is split before looking at flushWeight.
	pieceSize = 256 << 10
	// restAt is where the state keeps what is left of a batch.
	restAt = "rest"
	// takenAt is where the state keeps the Stats of all that was counted, for the progress.
	takenAt = "taken"
)

// Split counts the words of files and sends the counts by parts, so that all counts of
// one word reach the same Count.
type Split struct {
	Files port.In[Batch]
	Words port.Out[Words]
	Stats port.Out[Stats]
}

// JobType implements job.Typer.
func (*Split) JobType() string { return "wordcount/split" }

// rest is what a commit in the middle of a batch left to be done: the files from the
// first on, and of that one what follows Offset.
type rest struct {
	Files  []File `json:"files"`
	Offset int64  `json:"offset,omitempty"`
}

// Run counts all batches that are there, and commits whenever it holds much.
func (s *Split) Run(ctx context.Context, run *worker.Run) error {
	w := splitting{Split: s, run: run, tally: newTally(), head: make([]byte, wholeFile), piece: make([]byte, pieceSize)}
	if _, err := run.State().Get(takenAt, &w.taken); err != nil {
		return err
	}
	var left rest
	found, err := run.State().Get(restAt, &left)
	if err != nil {
		return err
	}
	if w.restSaved = found; found {
		if err := w.files(ctx, left); err != nil {
			return err
		}
	}
	for batch, err := range s.Files.All() {
		if err != nil {
			return err
		}
		if err := w.files(ctx, rest{Files: batch.Files}); err != nil {
			return err
		}
	}
	return w.flush(rest{})
}

// splitting is the work of one run of Split.
type splitting struct {
	*Split
	run       *worker.Run
	tally     *tally
	stats     Stats // since the last flush
	taken     Stats // before that
	restSaved bool  // there is a rest in the state
	head      []byte
	piece     []byte
}

// files counts a batch, or what is left of one.
func (w *splitting) files(ctx context.Context, left rest) error {
	for len(left.Files) > 0 {
		f := left.Files[0]
		if err := w.file(ctx, left); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if ioErr := (*fs.PathError)(nil); errors.As(err, &ioErr) {
				return cannotRead(string(f.Path), err)
			}
			return err
		}
		left = rest{Files: left.Files[1:]}
		if w.tally.weight < flushWeight && w.stats.Bytes+w.stats.SkippedBytes < flushRead {
			continue
		}
		if err := w.checkpoint(left); err != nil {
			return err
		}
	}
	return nil
}

// file counts the first file of left from its offset on.
func (w *splitting) file(ctx context.Context, left rest) error {
	file, err := os.Open(string(left.Files[0].Path))
	if err != nil {
		return err
	}
	defer file.Close()
	var src io.ReadSeeker = file
	n, err := io.ReadFull(file, w.head)
	switch {
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		src = bytes.NewReader(w.head[:n])
	case err != nil:
		return err
	}
	// A file is counted or skipped as a whole: look through it before the first word goes out.
	if left.Offset == 0 {
		if _, err := src.Seek(0, io.SeekStart); err != nil {
			return err
		}
		valid, err := validUTF8(ctx, src, w.piece)
		if err != nil {
			return err
		}
		if !valid {
			w.stats.add(Stats{Skipped: 1, SkippedBytes: left.Files[0].Size})
			return nil
		}
	}
	if _, err := src.Seek(left.Offset, io.SeekStart); err != nil {
		return err
	}
	return w.text(ctx, src, left)
}

// text counts the words of src, which is what left says is left of the first file.
func (w *splitting) text(ctx context.Context, src io.Reader, left rest) error {
	words := tokenizer{emit: func(word []byte) {
		w.tally.add(word)
		w.stats.Words++
	}}
	at := left.Offset // of w.piece in the file
	fill, counted := 0, at
	for {
		n, err := src.Read(w.piece[fill:])
		fill += n
		used, end := words.write(w.piece[:fill])
		if end >= 0 {
			left.Offset = at + int64(end)
		}
		at += int64(used)
		fill = copy(w.piece, w.piece[used:fill])
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = ctx.Err()
		}
		if err == nil && (w.tally.weight >= flushWeight || w.stats.Bytes+left.Offset-counted >= flushRead) {
			// What was read of a word that has begun is read again if this commit is the
			// last of the process, and is in words if it is not.
			w.stats.Bytes += left.Offset - counted
			counted = left.Offset
			err = w.checkpoint(left)
		}
		if err != nil {
			return err
		}
	}
	words.end()
	w.stats.add(Stats{Files: 1, Bytes: at - counted})
	return nil
}

// checkpoint commits all words counted so far.
func (w *splitting) checkpoint(left rest) error {
	if err := w.flush(left); err != nil {
		return err
	}
	if err := w.run.Checkpoint(); err != nil {
		return fmt.Errorf("committing words: %w", err)
	}
	return nil
}

// flush writes all words counted so far, and what is left of the batch.
func (w *splitting) flush(left rest) error {
	if err := w.send(); err != nil {
		return err
	}
	if w.stats != (Stats{}) {
		if err := w.Stats.Write(w.stats); err != nil {
			return err
		}
		w.taken.add(w.stats)
		w.stats = Stats{}
		if err := w.run.State().Set(takenAt, w.taken); err != nil {
			return err
		}
	}
	if len(left.Files) > 0 {
		w.restSaved = true
		return w.run.State().Set(restAt, left)
	}
	if w.restSaved {
		w.restSaved = false
		w.run.State().Unset(restAt)
	}
	return nil
}

// send writes the words of the tally, part by part.
func (w *splitting) send() error {
	var packers [parts]packer
	for i := range packers {
		key := strconv.Itoa(i)
		packers[i] = packer{part: i, full: func(p Words) error { return w.Words.WriteKey(key, p) }}
	}
	for word, n := range w.tally.all() {
		if err := packers[partOf(word)].add(word, n); err != nil {
			return err
		}
	}
	for i := range packers {
		if err := packers[i].flush(); err != nil {
			return err
		}
	}
	w.tally.reset()
	return nil
}
