package main

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"charm.land/lipgloss/v2"

	"github.com/weirworks/weir/internal/golden"
	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

var someResult = Result{
	Files: 1234, Skipped: 1, Bytes: 5_600_000, Words: 98765, Distinct: 4321,
	Top: []Entry{{"the", 4000}, {"straße", 1999}, {"日本語", 1999}, {"x", 1}},
}

var someTree = []*job.Info{
	{ID: "t", Name: "wordcount", Type: "wordcount", Graph: true, Status: statemachine.Completed, Ports: []job.PortInfo{
		{Spec: port.Spec{Name: "result", Dir: port.Output}, Waiting: 1, Total: 1},
	}},
	{ID: "t.1", Name: "list", Type: "wordcount/list", Parent: "t", Status: statemachine.Completed, Steps: 2, Ports: []job.PortInfo{
		{Spec: port.Spec{Name: "files", Dir: port.Output}, Total: 5, Wired: true},
	}},
	{ID: "t.2", Name: "split", Type: "wordcount/split", Parent: "t", Status: statemachine.Completed, Steps: 12, Ports: []job.PortInfo{
		{Spec: port.Spec{Name: "files", Dir: port.Input}, Total: 5},
		{Spec: port.Spec{Name: "words", Dir: port.Output}, Total: 1280, Wired: true},
	}},
}

func TestWriteTable(t *testing.T) {
	t.Parallel()
	for name, style := range map[string]term.Style{"table.txt": {Width: 60}, "table_color.txt": {Width: 60, Color: true}} {
		var out bytes.Buffer
		if err := writeTable(&out, style, someResult, someTree, "1.2s"); err != nil {
			t.Fatal(err)
		}
		golden.Check(t, filepath.Join("testdata", name), out.Bytes())
	}
}

func TestWriteJSON(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	r := someResult
	r.Top = append(r.Top, Entry{"<&>\u2028", 1})
	for _, r := range []Result{r, {}} {
		if err := writeJSON(&out, r); err != nil {
			t.Fatal(err)
		}
	}
	golden.Check(t, filepath.Join("testdata", "result.json"), out.Bytes())
}

func TestJoinResult(t *testing.T) {
	t.Parallel()
	pages := []json.RawMessage{
		json.RawMessage(`{"words":3,"top":[{"word":"a","count":2}],"more":true}`),
		json.RawMessage(`{"words":3,"top":[{"word":"b","count":1}]}`),
	}
	whole, err := joinResult(pages)
	if err != nil || whole.More || whole.Words != 3 || len(whole.Top) != 2 || whole.Top[1].Word != "b" {
		t.Errorf("got %+v, %v", whole, err)
	}
	for _, part := range [][]json.RawMessage{nil, pages[:1]} {
		if r, err := joinResult(part); err != nil || !r.More {
			t.Errorf("a part of the pages passes for the whole: %+v, %v", r, err)
		}
	}
	if _, err := joinResult([]json.RawMessage{json.RawMessage(`[]`)}); err == nil {
		t.Error("no result passes for one")
	}
}

func TestProgressLines(t *testing.T) {
	t.Parallel()
	v := view{
		found: Cursor{Files: 2000, Bytes: 30_000_000},
		taken: Stats{Files: 990, Skipped: 10, Bytes: 14_000_000, SkippedBytes: 1_000_000, Words: 1_500_000},
		edges: []edge{{"list", "split", "files", 1, 1}, {"split", "count", "words", 1234, 123456}},
		took:  1500 * time.Millisecond,
	}
	var out bytes.Buffer
	for _, columns := range []int{40, 60, 80, 120} {
		v.listed = columns > 60
		for _, line := range v.lines(term.Style{Width: columns}) {
			if lipgloss.Width(line) > columns {
				t.Errorf("%q is wider than %d columns", line, columns)
			}
			out.WriteString(line + "\n")
		}
	}
	golden.Check(t, filepath.Join("testdata", "progress.txt"), out.Bytes())

	v.taken.Bytes, v.taken.Files = 31_000_000, 2001
	if v.clamp(); v.bytes() != v.found.Bytes || v.taken.Files+v.taken.Skipped != v.found.Files {
		t.Errorf("more than all: %+v", v)
	}
}
