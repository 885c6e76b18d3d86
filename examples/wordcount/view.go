package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// The meter takes the columns that a summary of summarySize leaves, within its bounds.
const (
	maxMeter    = 30
	minMeter    = 8
	summarySize = 68
)

// edge is what passed over all wires between two stages.
type edge struct {
	from, to, port string
	waiting, total int64
}

// view is what there is to show at one moment.
type view struct {
	found  Cursor
	listed bool  // all files are found
	taken  Stats // by the Splits: its words may still be on their way
	edges  []edge
	took   time.Duration
}

func (v *view) countEdges(kind string, i *job.Info) {
	for n := range v.edges {
		e := &v.edges[n]
		if in, ok := i.Port(port.Input, e.port); ok && e.to == kind {
			e.waiting += in.Waiting
			e.total += in.Total
		}
	}
}

// clamp makes up for what the Splits took since List was asked, and for files that grew.
func (v *view) clamp() {
	v.taken.Files = min(v.taken.Files, v.found.Files)
	v.taken.Skipped = min(v.taken.Skipped, v.found.Files-v.taken.Files)
	v.taken.Bytes = min(v.taken.Bytes, v.found.Bytes)
	v.taken.SkippedBytes = min(v.taken.SkippedBytes, v.found.Bytes-v.taken.Bytes)
}

func (v *view) bytes() int64 { return v.taken.Bytes + v.taken.SkippedBytes }

// summary is the view on one line. What matters less is left out when it would take more
// than so many columns; zero means any number.
func (v *view) summary(columns int) string {
	more := ""
	if !v.listed {
		more = "+"
	}
	text := fmt.Sprintf("%s/%s%s files", term.Number(v.taken.Files+v.taken.Skipped), term.Number(v.found.Files), more)
	took := fmt.Sprintf(", %.1fs", v.took.Seconds())
	for _, part := range []string{
		fmt.Sprintf(", %s/%s%s", term.Bytes(v.bytes()), term.Bytes(v.found.Bytes), more),
		fmt.Sprintf(", %s words", term.Number(v.taken.Words)),
	} {
		if columns > 0 && len(text)+len(part)+len(took) > columns {
			break
		}
		text += part
	}
	return text + took
}

// lines is the view for a terminal.
func (v *view) lines(s term.Style) []string {
	size := min(maxMeter, max(minMeter, s.Columns()-summarySize))
	meter := term.Meter(v.bytes(), v.found.Bytes, size)
	lines := []string{
		s.Accent(meter) + s.Faint(strings.Repeat("░", size-len([]rune(meter)))) + "  " + v.summary(max(1, s.Columns()-size-2)),
		s.Faint("  PORT                   waiting/total"),
	}
	for _, e := range v.edges {
		lines = append(lines, fmt.Sprintf("  %-5s → %-5s  %-5s  %s/%s", e.from, e.to, e.port, term.Number(e.waiting), term.Number(e.total)))
	}
	return lines
}
