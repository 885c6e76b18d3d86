package handler_test

import (
	"strings"
	"testing"

	"github.com/weirworks/weir/handler"
	"github.com/weirworks/weir/job"
)

// A line tells how far its payload is, if it begins as such a line and has a number; others are lines of the log.
func TestProgressOfALine(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ä", 150)
	for text, want := range map[string]job.Progress{
		"P: 3/5 pages": {Done: 3, Total: 5, Text: "pages"}, "P: 3/5": {Done: 3, Total: 5}, "P: 0": {}, "P: 7/0 of some": {Done: 7, Text: "of some"},
		"P: 1200 rows of a table": {Done: 1200, Text: "rows of a table"}, "P: 40% of the file": {Done: 40, Total: 100, Text: "of the file"},
		"P: 0.4 of the file": {Done: 40, Total: 100, Text: "of the file"}, "P: 12.9%": {Done: 12, Total: 100}, "P: 100%": {Done: 100, Total: 100},
		"P: 1.0 \tdone\x00 \xff": {Done: 100, Total: 100, Text: "done  \uFFFD"}, "P: 1 " + long: {Done: 1, Text: long[:job.MaxProgressText]},
	} {
		got, ok := handler.Line{Text: text}.Progress()
		if !ok || got != want {
			t.Errorf("%q: %+v, %t; want %+v", text, got, ok, want)
		}
		if err := got.Validate(); err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if _, ok := (handler.Line{Text: text, Stderr: true}).Progress(); ok {
			t.Errorf("%q on standard error is of the log", text)
		}
	}
	for _, text := range []string{"P: hello", "P:3/5", " P: 3/5", "p: 3/5", "P: -1", "P: 3/-5", "P: 3/x", "P: 101%", "P: 1.5", "P: NaN", "P: ", "P: 99999999999999999999", "J: a|b"} {
		if p, ok := (handler.Line{Text: text}).Progress(); ok {
			t.Errorf("%q: %+v", text, p)
		}
	}
}
