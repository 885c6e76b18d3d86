package component

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/worker"
)

// Values of WriteFile's parameter mode.
const (
	ModeCreate   = "create"   // a file that is not empty is refused; the default
	ModeAppend   = "append"   // what is there stays
	ModeTruncate = "truncate" // what is there goes away when the job begins
)

// WriteFile appends each message to a file.
//
// Format lines writes texts as they are and other values as JSON, one a line; jsonl writes
// all as JSON; csv writes objects or lists as records, after a header of columns, or of the
// fields of the first object.
//
// The state has the length of the file up to which its messages are committed. A run writes
// from there on, and syncs the file before it commits. What a run that died had written
// beyond is written over with the same bytes, since the messages are the same; at the end
// of in what is still beyond is cut off. It is not cut off before: a run that was taken for
// dead, and is not, would cut off what its successor wrote. So nothing is missing and
// nothing is there twice, but the file's last lines may be uncommitted while the job goes
// on. No other job or program may write to the file.
type WriteFile struct {
	acting
	// Path is a file below Policy.Root. Required. Its folder must exist.
	Path string `json:"path,omitempty" doc:"file to write"`
	// Format is lines, csv or jsonl. Empty means what the file's name says, else lines.
	Format string `json:"format,omitempty" doc:"lines, csv or jsonl; default by the file's name, else lines"`
	// Mode says what becomes of what is in the file when the job begins.
	Mode string `json:"mode,omitempty" doc:"create (default), append or truncate: what becomes of a file that is there"`
	// Columns are those of CSV.
	Columns []string `json:"columns,omitempty" doc:"columns of CSV, default the fields of the first object"`
	// NoHeader leaves out the header of CSV.
	NoHeader bool `json:"no_header,omitempty" doc:"write no header to CSV"`
	// Comma separates the fields of CSV. Empty means a comma.
	Comma string                   `json:"comma,omitempty" doc:"separator of CSV fields, default a comma"`
	In    port.In[json.RawMessage] `port:"in,required"`

	files filePolicy
}

// JobType implements job.TypeNamer.
func (*WriteFile) JobType() string { return "write_file" }

// Describe implements Component.
func (*WriteFile) Describe() string { return "appends messages to a file as lines, CSV or JSON lines" }

// Validate implements Component.
func (f *WriteFile) Validate() error {
	var c check
	c.is(f.Path != "", "path is missing")
	c.is(!strings.HasSuffix(strings.ToLower(f.Path), ".gz"), "path %q: compressed files cannot be written", f.Path)
	c.format(f.Format, f.Comma)
	c.oneOf("mode", f.Mode, ModeCreate, ModeAppend, ModeTruncate)
	seen := map[string]bool{}
	for _, name := range f.Columns {
		c.is(!seen[name], "columns: %q is named twice", name)
		seen[name] = true
	}
	return c.err(f)
}

// written is the state of WriteFile.
type written struct {
	Length  int64    `json:"length"` // bytes that are committed
	Columns []string `json:"columns,omitempty"`
	Header  bool     `json:"header,omitempty"` // it is written
}

const writtenKey = "written"

// Start implements worker.Starter: it prepares the file. Its length is committed before
// anything is written.
func (f *WriteFile) Start(_ context.Context, run *worker.Run) (err error) {
	if err := f.Validate(); err != nil {
		return err
	}
	dir, file, err := f.open()
	if err != nil {
		return err
	}
	defer dir.Close()
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	s := written{Length: info.Size(), Columns: f.Columns}
	switch f.Mode {
	case ModeTruncate:
		s.Length, err = 0, file.Truncate(0)
	case ModeAppend:
		s.Header = s.Length > 0
	default:
		if s.Length > 0 {
			err = fmt.Errorf("%s is there and not empty: remove it, or use mode append or truncate", f.Path)
		}
	}
	if err != nil {
		return err
	}
	return run.State().Set(writtenKey, s)
}

func (f *WriteFile) open() (*folder, *os.File, error) {
	dir, err := openFolder(f.files)
	if err != nil {
		return nil, nil, err
	}
	file, err := dir.open(f.Path, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, nil, errors.Join(err, dir.Close())
	}
	return dir, file, nil
}

// Run implements worker.Worker.
func (f *WriteFile) Run(ctx context.Context, run *worker.Run) error {
	if err := f.Validate(); err != nil {
		return err
	}
	var s written
	if _, err := run.State().Get(writtenKey, &s); err != nil {
		return err
	}
	// All is formatted before anything is written.
	var text bytes.Buffer
	var q quota
	err := q.drain(ctx, f.In, func(raw json.RawMessage) error { return f.format(&text, &s, raw) })
	if err != nil || text.Len() == 0 && !f.In.Done() {
		return err
	}
	dir, file, err := f.open()
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := errors.Join(f.write(file, &s, text.Bytes()), file.Close()); err != nil {
		return err
	}
	return run.State().Set(writtenKey, s)
}

// write writes text behind what is committed.
func (f *WriteFile) write(file *os.File, s *written, text []byte) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if info.Size() < s.Length {
		return fmt.Errorf("%s has %d bytes and %d were written: somebody shortened it", f.Path, info.Size(), s.Length)
	}
	if _, err := file.WriteAt(text, s.Length); err != nil {
		return err
	}
	s.Length += int64(len(text))
	if f.In.Done() {
		if err := file.Truncate(s.Length); err != nil {
			return err
		}
	}
	return file.Sync()
}

// format appends a message to text.
func (f *WriteFile) format(text *bytes.Buffer, s *written, raw json.RawMessage) error {
	raw, err := port.Encode(raw) // on one line
	if err != nil {
		return err
	}
	switch formatOf(f.Format, f.Path) {
	case FormatCSV:
		return f.record(text, s, raw)
	case FormatLines:
		if raw[0] == '"' {
			var line string
			if err := port.Decode(raw, &line); err != nil {
				return err
			}
			if strings.ContainsAny(line, "\r\n") {
				return errors.New("a text of several lines cannot be a line: use format jsonl")
			}
			raw = json.RawMessage(line)
		}
	}
	text.Write(raw)
	text.WriteByte('\n')
	return nil
}

// record appends a message as a CSV record, and before the first one the header.
func (f *WriteFile) record(text *bytes.Buffer, s *written, raw json.RawMessage) error {
	sep, err := comma(f.Comma)
	if err != nil {
		return err
	}
	w := csv.NewWriter(text)
	w.Comma = sep
	if len(s.Columns) == 0 && raw[0] == '{' {
		if s.Columns, err = fieldNames(raw); err != nil {
			return err
		}
	}
	fields, err := csvFields(raw, s.Columns)
	if err != nil {
		return err
	}
	if !s.Header && !f.NoHeader && len(s.Columns) > 0 {
		if err := w.Write(s.Columns); err != nil {
			return err
		}
	}
	s.Header = true
	if len(fields) == 1 && fields[0] == "" {
		w.Flush()
		text.WriteString("\"\"\n") // the writer would write an empty line, which readers skip
		return w.Error()
	}
	if err := w.Write(fields); err != nil {
		return err
	}
	w.Flush()
	return w.Error()
}

// fieldNames returns the names of an object's fields in their order.
func fieldNames(raw json.RawMessage) ([]string, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	var names []string
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, err
		}
		var skip json.RawMessage
		if err := d.Decode(&skip); err != nil {
			return nil, err
		}
		names = append(names, name.(string)) //nolint:forcetypeassert // keys are texts
	}
	if len(names) == 0 {
		return nil, errors.New("the first object has no fields: name the columns")
	}
	return names, nil
}
