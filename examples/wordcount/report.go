package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/job"
)

// readResult reads the result of a completed tree, and leaves it there for the next time.
func readResult(ctx context.Context, h *job.Handle) (Result, error) {
	var result Result
	for n := 1; ; n *= 16 {
		pages, err := h.Peek(ctx, "result", n)
		if err != nil {
			return result, err
		}
		if result, err = joinResult(pages); err != nil || !result.More {
			return result, err
		}
		if len(pages) < n {
			return result, fmt.Errorf("the result is incomplete: somebody took a part of it; %w", errAgain)
		}
	}
}

// joinResult puts the pages of a result together.
func joinResult(pages []json.RawMessage) (Result, error) {
	result := Result{More: true}
	var top []Entry
	for _, raw := range pages {
		result = Result{}
		if err := json.Unmarshal(raw, &result); err != nil {
			return result, fmt.Errorf("reading the result: %w", err)
		}
		top = append(top, result.Top...)
	}
	result.Top = top
	return result, nil
}

// writeJSON writes the result as one JSON object.
func writeJSON(w io.Writer, r Result) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(struct {
		Files    int64   `json:"files"`
		Skipped  int64   `json:"skipped"`
		Words    int64   `json:"words"`
		Distinct int64   `json:"distinct"`
		Top      []Entry `json:"top"`
	}{r.Files, r.Skipped, r.Words, r.Distinct, append([]Entry{}, r.Top...)})
}

// writeTable writes the result, and the jobs that made it, for people. note goes with
// its headline.
func writeTable(w io.Writer, s term.Style, r Result, tree []*job.Info, note string) error {
	var bars []term.Bar
	for _, e := range r.Top {
		bars = append(bars, term.Bar{Label: e.Word, Value: e.Count})
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%s words, %s different, in %s (%s)", s.Bold(term.Number(r.Words)),
		term.Number(r.Distinct), plural(r.Files, "file"), term.Bytes(r.Bytes))
	if r.Skipped > 0 {
		fmt.Fprintf(&out, "; %s skipped: not UTF-8", plural(r.Skipped, "file"))
	}
	fmt.Fprintf(&out, " %s\n\n", s.Faint("— "+note))
	if err := term.Bars(&out, bars, s); err != nil {
		return err
	}
	if len(bars) > 0 {
		out.WriteByte('\n')
	}
	if err := term.Tree(&out, tree, s); err != nil {
		return err
	}
	_, err := io.WriteString(w, out.String())
	return err
}

func plural(n int64, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return term.Number(n) + " " + noun
}
