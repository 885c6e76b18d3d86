package component

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"time"
)

// Public tells whether requests may go to an address by default.
var Public = public

// Evaluate evaluates an expression for a message.
func Evaluate(source string, raw json.RawMessage) (json.RawMessage, error) {
	prog, err := compile(source, scopeItem)
	if err != nil {
		return nil, err
	}
	e := &expression{source: source, prog: prog, ctx: context.Background()}
	e.env.Now, e.env.Step = func() time.Time { return time.Unix(0, 0) }, e.step
	v, err := e.message(raw)
	if err != nil {
		return nil, err
	}
	return result(v)
}

// ReadAll reads the records of a text: 0 as CSV, 1 as JSON lines, 2 as lines, 3 as CSV
// without header. With every it begins anew where it is after that many records.
func ReadAll(text string, kind, every int) (items []json.RawMessage, failed bool) {
	var header []string
	open := func(at int64) records {
		r := strings.NewReader(text[at:])
		if kind == 0 || kind == 3 {
			return newCSVReader(r, ',', kind == 3, header)
		}
		return newLineReader(r, kind == 1)
	}
	begin, recs := int64(0), open(0)
	for n := 1; ; n++ {
		raw, err := recs.next()
		if err != nil {
			return items, !errors.Is(err, io.EOF)
		}
		if raw != nil {
			items = append(items, raw)
		}
		if every > 0 && n%every == 0 {
			if c, ok := recs.(*csvReader); ok {
				header = c.header
			}
			begin += recs.offset()
			recs = open(begin)
		}
	}
}

// WriteCSV formats a message as CSV.
func WriteCSV(raw json.RawMessage) (string, error) {
	var text bytes.Buffer
	err := (&WriteFile{Path: "x.csv"}).format(&text, &written{}, raw)
	return text.String(), err
}
