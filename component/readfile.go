package component

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/worker"
)

// ReadFile writes the records of files, in order: of the file of its parameter path, then
// of those whose names come in at its port path.
//
// Format lines gives each line as a text, without its end; jsonl gives the JSON value of
// each line that is not empty; csv gives each record as an object by the names of the
// header, or with no_header as a list, all fields being texts. Files whose names end in
// .gz are decompressed. A record has at most 1 MiB. A file must not change while it is
// read. There is a checkpoint at least each MiB, from which a later run goes on; in a file
// that is compressed it must decompress up to there again. The end of port path is the end of out.
type ReadFile struct {
	// Path is a file below Policy.Root.
	Path string `json:"path,omitempty" doc:"file to read first; more may come in at port path"`
	// Format is lines, csv or jsonl. Empty means what the file's name says, else lines.
	Format string `json:"format,omitempty" doc:"lines, csv or jsonl; default by the file's name, else lines"`
	// NoHeader means that CSV files have no header.
	NoHeader bool `json:"no_header,omitempty" doc:"CSV files have no header: records become lists"`
	// Comma separates the fields of CSV. Empty means a comma.
	Comma string                    `json:"comma,omitempty" doc:"separator of CSV fields, default a comma"`
	Paths port.In[string]           `port:"path"`
	Out   port.Out[json.RawMessage] `port:"out"`

	files filePolicy
}

// JobType implements job.TypeNamer.
func (*ReadFile) JobType() string { return "read_file" }

// Describe implements Component.
func (*ReadFile) Describe() string { return "writes the lines, CSV records or JSON lines of files" }

// Validate implements Component.
func (f *ReadFile) Validate() error {
	var c check
	c.format(f.Format, f.Comma)
	return c.err(f)
}

// place is where in a file a job is.
type place struct {
	Path   string   `json:"path"`
	Offset int64    `json:"offset"` // bytes read, after decompression
	Record int      `json:"record"` // records read
	Header []string `json:"header,omitempty"`
}

// Run implements worker.Worker.
func (f *ReadFile) Run(ctx context.Context, run *worker.Run) error {
	if err := f.Validate(); err != nil {
		return err
	}
	dir, err := openFolder(f.files)
	if err != nil {
		return err
	}
	defer dir.Close()
	if f.Path != "" {
		err := once(run, func() error { return f.read(ctx, run, dir, f.Path) })
		if err != nil {
			return err
		}
	}
	for f.Paths.Len() > 0 {
		// Its name is taken when all of it is read.
		path, _, err := f.Paths.Peek()
		if err != nil {
			return err
		}
		if err := f.read(ctx, run, dir, path); err != nil {
			return err
		}
		if _, _, err := f.Paths.Read(); err != nil {
			return err
		}
	}
	return nil
}

// placeKey is where the state has the place in the file that is being read.
const placeKey = "place"

// read writes the records of a file, from where an earlier run was.
func (f *ReadFile) read(ctx context.Context, run *worker.Run, dir *folder, path string) (err error) {
	var at place
	if _, err := run.State().Get(placeKey, &at); err != nil {
		return err
	}
	if at.Path != path {
		at = place{Path: path}
	}
	file, err := dir.open(path, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer file.Close()
	recs, err := f.records(file, &at)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	begin := at.Offset
	save := func() error {
		at.Offset = begin + recs.offset()
		if c, ok := recs.(*csvReader); ok {
			at.Header = c.header
		}
		return run.State().Set(placeKey, at)
	}
	p := pace{run: run, save: save}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		raw, err := recs.next()
		if errors.Is(err, io.EOF) {
			run.State().Unset(placeKey)
			return nil
		}
		at.Record++
		if err == nil && len(raw) > worker.MaxMessage {
			err = errLong
		}
		if err != nil {
			return fmt.Errorf("%s: record %d: %w", path, at.Record, err)
		}
		if raw == nil {
			continue
		}
		if err := f.Out.Write(raw); err != nil {
			return err
		}
		if err := p.wrote(2 * len(raw)); err != nil {
			return err
		}
	}
}

// records opens the records of a file from a place on.
func (f *ReadFile) records(file *os.File, at *place) (records, error) {
	var r io.Reader = file
	if strings.HasSuffix(strings.ToLower(at.Path), ".gz") {
		z, err := gzip.NewReader(file)
		if err != nil {
			return nil, err
		}
		r = z
		if _, err := io.CopyN(io.Discard, r, at.Offset); err != nil {
			return nil, errShorter(err)
		}
	} else if err := seek(file, at.Offset); err != nil {
		return nil, err
	}
	if at.Offset == 0 {
		var err error
		if r, at.Offset, err = skipBOM(r); err != nil {
			return nil, err
		}
	}
	format := formatOf(f.Format, at.Path)
	if format != FormatCSV {
		return newLineReader(r, format == FormatJSONL), nil
	}
	sep, err := comma(f.Comma)
	if err != nil {
		return nil, err
	}
	return newCSVReader(r, sep, f.NoHeader, at.Header), nil
}

func seek(file *os.File, offset int64) error {
	info, err := file.Stat()
	if err == nil && info.Size() < offset {
		err = errShorter(io.EOF)
	}
	if err == nil {
		_, err = file.Seek(offset, io.SeekStart)
	}
	return err
}

func errShorter(err error) error {
	if errors.Is(err, io.EOF) {
		return errors.New("it is shorter than when an earlier run read it")
	}
	return err
}

// skipBOM skips the mark with which some programs begin UTF-8.
func skipBOM(r io.Reader) (io.Reader, int64, error) {
	b := bufio.NewReader(r)
	mark, err := b.Peek(3)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, 0, err
	}
	if string(mark) != "\uFEFF" {
		return b, 0, nil
	}
	n, err := b.Discard(3)
	return b, int64(n), err
}
