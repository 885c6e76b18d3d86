package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/worker"
)

// Sizes of what is sent. A chunk that needs an escape for each byte still fits into a
// message, and a commit of such chunks into a commit.
const (
	chunkBytes  = 64 << 10
	commitEvery = 16 // chunks
	sampleBytes = 120
	cursorAt    = "cursor"
)

// File is a log as it was when the analysis began: lines that are appended later are not
// part of it.
type File struct {
	Path string `json:"path"`
	Size int64  `json:"size"`
}

// Chunk is some whole lines of a file.
type Chunk struct {
	File  int    `json:"file"` // its place among the files
	Name  string `json:"name"`
	Line  int64  `json:"line"` // the number of the first
	Text  string `json:"text"`
	Large bool   `json:"large,omitempty"` // Text is the beginning of a line larger than a chunk
}

// Read reads files in order, as chunks.
type Read struct {
	Files  []File
	Chunks port.Out[Chunk]
}

// JobType implements job.Typer.
func (*Read) JobType() string { return "logs/read" }

// Cursor is how far Read got: all before it is committed.
type Cursor struct {
	File   int   `json:"file"`
	Offset int64 `json:"offset"`
	Line   int64 `json:"line"`
}

// Run reads on from the cursor, and rests whenever the parsers have enough to do.
func (r *Read) Run(_ context.Context, run *worker.Run) error {
	var at Cursor
	if _, err := run.State().Get(cursorAt, &at); err != nil {
		return err
	}
	for ; at.File < len(r.Files); at = (Cursor{File: at.File + 1}) {
		if err := r.file(run, &at); err != nil {
			return err
		}
	}
	return run.State().Set(cursorAt, at)
}

// file reads what is left of one file.
func (r *Read) file(run *worker.Run, at *Cursor) error {
	name := r.Files[at.File].Path
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	for n := 1; at.Offset < r.Files[at.File].Size; n++ {
		c, size, err := nextChunk(f, at.Offset, r.Files[at.File].Size)
		if err != nil {
			return fmt.Errorf("reading %s: %w", name, err)
		}
		c.File, c.Name, c.Line = at.File, name, at.Line+1
		if err := r.Chunks.Write(c); err != nil {
			return err
		}
		at.Offset += size
		at.Line += c.lines()
		if n%commitEvery > 0 {
			continue
		}
		if err := run.State().Set(cursorAt, at); err != nil {
			return err
		}
		if err := run.Checkpoint(); err != nil {
			return err // worker.ErrFull among others: the job rests until there is room
		}
	}
	return nil
}

// lines is how many lines the chunk has.
func (c *Chunk) lines() int64 {
	n := int64(strings.Count(c.Text, "\n"))
	if c.Large || !strings.HasSuffix(c.Text, "\n") {
		n++
	}
	return n
}

// nextChunk reads whole lines from offset on, and returns how many bytes they take.
// A line that is larger than a chunk is one by itself. What is not UTF-8 is replaced.
func nextChunk(f io.ReaderAt, offset, end int64) (c Chunk, size int64, err error) {
	text := make([]byte, min(chunkBytes, end-offset))
	if err := readAt(f, text, offset); err != nil {
		return c, 0, err
	}
	size = int64(bytes.LastIndexByte(text, '\n') + 1)
	switch {
	case size == 0 && offset+int64(len(text)) < end:
		c.Large = true
		if size, err = lineSize(f, offset, end); err != nil {
			return c, 0, err
		}
		text = text[:sampleBytes]
	case size == 0 || offset+int64(len(text)) == end:
		size = int64(len(text)) // the last line may have no end
	default:
		text = text[:size]
	}
	c.Text = strings.ToValidUTF8(string(text), "\uFFFD")
	return c, size, nil
}

// lineSize is how many bytes the line at offset has, with its end.
func lineSize(f io.ReaderAt, offset, end int64) (int64, error) {
	buf := make([]byte, chunkBytes)
	for at := offset; at < end; at += int64(len(buf)) {
		buf = buf[:min(chunkBytes, end-at)]
		if err := readAt(f, buf, at); err != nil {
			return 0, err
		}
		if i := bytes.IndexByte(buf, '\n'); i >= 0 {
			return at + int64(i) + 1 - offset, nil
		}
	}
	return end - offset, nil
}

// readAt fills buf.
func readAt(f io.ReaderAt, buf []byte, offset int64) error {
	n, err := f.ReadAt(buf, offset)
	if n == len(buf) {
		return nil
	}
	if errors.Is(err, io.EOF) {
		return errors.New("it is shorter than when the analysis began; begin another one")
	}
	return err
}
