package component

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/weirworks/weir/port"
)

// records reads the records of a file, one by one.
type records interface {
	// next returns the next record as a message, or io.EOF. A nil message stands for a
	// record that is none, such as a header.
	next() (json.RawMessage, error)
	// offset is where the next record begins, counted from the beginning of the reader.
	offset() int64
}

var errLong = fmt.Errorf("it is longer than %d bytes", maxLine)

// lineReader reads lines, or with json the JSON values on them.
type lineReader struct {
	r    *bufio.Reader
	json bool
	at   int64
}

func newLineReader(r io.Reader, asJSON bool) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(r, 64<<10), json: asJSON}
}

func (l *lineReader) offset() int64 { return l.at }

func (l *lineReader) next() (json.RawMessage, error) {
	line, err := l.line()
	if err != nil {
		return nil, err
	}
	if !l.json {
		if !utf8.Valid(line) {
			return nil, errors.New("it is not valid UTF-8")
		}
		return port.Encode(string(line))
	}
	if len(bytes.TrimSpace(line)) == 0 {
		return nil, nil
	}
	return port.Encode(json.RawMessage(line))
}

// line returns a line without its end. The last one need not have one.
func (l *lineReader) line() ([]byte, error) {
	var line []byte
	for {
		part, err := l.r.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > maxLine {
			return nil, errLong
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil && (!errors.Is(err, io.EOF) || len(line) == 0) {
			return nil, err
		}
		l.at += int64(len(line))
		line = bytes.TrimSuffix(line, []byte{'\n'})
		return bytes.TrimSuffix(line, []byte{'\r'}), nil
	}
}

// csvReader reads the records of a CSV file as objects, or as lists without header.
type csvReader struct {
	r      *csv.Reader
	limit  *limiter
	header []string // nil while it is not known
	lists  bool     // there is none
}

// newCSVReader reads on after the header, if that is known already.
func newCSVReader(r io.Reader, sep rune, lists bool, header []string) *csvReader {
	limit := &limiter{r: r}
	c := &csvReader{r: csv.NewReader(limit), limit: limit, header: header, lists: lists}
	c.r.Comma = sep
	c.r.FieldsPerRecord = -1
	c.r.ReuseRecord = true
	return c
}

func (c *csvReader) offset() int64 { return c.r.InputOffset() }

func (c *csvReader) next() (json.RawMessage, error) {
	c.limit.left = maxLine + 64<<10 // the reader reads ahead
	fields, err := c.r.Read()
	if err != nil {
		var e *csv.ParseError
		if errors.As(err, &e) {
			err = e.Err // its line counts from where this run began
		}
		return nil, err
	}
	for i, f := range fields {
		if !utf8.ValidString(f) {
			return nil, fmt.Errorf("field %d is not valid UTF-8", i+1)
		}
	}
	switch {
	case c.lists:
		return port.Encode(fields)
	case c.header == nil:
		return nil, c.setHeader(fields)
	case len(fields) != len(c.header):
		return nil, fmt.Errorf("it has %d fields, the header has %d", len(fields), len(c.header))
	}
	return object(c.header, fields)
}

// setHeader keeps the names of the fields.
func (c *csvReader) setHeader(fields []string) error {
	seen := map[string]bool{}
	for i, name := range fields {
		if name == "" {
			return fmt.Errorf("field %d of the header has no name: fix it, or use no_header to get lists", i+1)
		}
		if seen[name] {
			return fmt.Errorf("the header has %q twice: fix it, or use no_header to get lists", name)
		}
		seen[name] = true
	}
	c.header = append([]string{}, fields...)
	return nil
}

// object is a JSON object of texts in the order of the names.
func object(names, values []string) (json.RawMessage, error) {
	out := []byte{'{'}
	for i, name := range names {
		key, err := port.Encode(name)
		if err != nil {
			return nil, err
		}
		value, err := port.Encode(values[i])
		if err != nil {
			return nil, err
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(append(out, key...), ':'), value...)
	}
	return append(out, '}'), nil
}

// limiter fails a reader that reads on and on, as one does after a quote that is never
// closed.
type limiter struct {
	r    io.Reader
	left int
}

// Read implements io.Reader.
func (l *limiter) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, errLong
	}
	n, err := l.r.Read(p[:min(len(p), l.left)])
	l.left -= n
	return n, err
}

// csvFields returns the fields of a message for a CSV file: of a list its elements, of an
// object the values of the columns.
func csvFields(raw json.RawMessage, columns []string) ([]string, error) {
	var v any
	err := port.Decode(raw, &v) // which keeps numbers as they are written
	if err != nil {
		return nil, err
	}
	if list, ok := v.([]any); ok {
		fields := make([]string, len(list))
		for i := range list {
			if fields[i], err = cell(list[i]); err != nil {
				return nil, fmt.Errorf("element %d: %w", i, err)
			}
		}
		return fields, nil
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s is neither an object nor a list", kindOf(v))
	}
	for name := range m {
		if !slices.Contains(columns, name) {
			return nil, fmt.Errorf("there is no column %q: name all in columns", name)
		}
	}
	fields := make([]string, len(columns))
	for i, name := range columns {
		if fields[i], err = cell(m[name]); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return fields, nil
}

// cell is the text of a value in a field: of a number as it was written.
func cell(v any) (string, error) {
	switch v := v.(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	case bool:
		return strconv.FormatBool(v), nil
	case json.Number:
		return string(v), nil
	}
	raw, err := port.Encode(v)
	return string(raw), err
}
