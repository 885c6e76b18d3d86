package term

import (
	"io"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/weirworks/weir/job"
)

// gap is what lies between columns.
const gap = "  "

// Table draws rows in columns; the first row is the head. Columns that are too wide together
// for the style are cut, the widest first: but never IDs of jobs, which are there to be copied,
// nor times, nor the words of a column STATUS or STATE.
// A last column whose head is empty is for sentences: they go on in the next line.
func Table(w io.Writer, rows [][]string, s Style) error {
	shown := make([][]string, len(rows))
	for n, row := range rows {
		for _, cell := range row {
			shown[n] = append(shown[n], s.Text(cell))
		}
	}
	widths := columnWidths(shown, s.Width)
	last := len(widths) - 1
	sentences := last >= 0 && len(shown[0]) == len(widths) && shown[0][last] == ""
	var out strings.Builder
	for n, row := range shown {
		if !sentences || len(row) <= last || ansi.StringWidth(row[last]) <= widths[last] {
			out.WriteString(s.tableLine(row, widths, n == 0))
			continue
		}
		for _, line := range (Style{Width: widths[last]}).Wrap(row[last], 0) {
			out.WriteString(s.tableLine(append(row[:last], line), widths, false))
			row = make([]string, len(widths))
		}
	}
	_, err := io.WriteString(w, out.String())
	return err
}

func (s Style) tableLine(row []string, widths []int, head bool) string {
	var line strings.Builder
	for i, cell := range row {
		line.WriteString(Pad(s.Fit(cell, widths[i]), widths[i]) + gap)
	}
	text := strings.TrimRight(line.String(), " ")
	if head {
		text = s.Faint(text)
	}
	return text + "\n"
}

// LeastWidth is the width that a Table of these rows needs, with its columns cut as far as they can be.
func LeastWidth(rows [][]string) int { return total(columnWidths(rows, 1)...) }

// columnWidths returns the widths of columns that fit together into a width, if it is not 0.
func columnWidths(rows [][]string, width int) []int {
	var widths, least []int
	for n, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths, least = append(widths, 0), append(least, 0)
			}
			size := ansi.StringWidth(cell)
			widths[i] = max(widths[i], size)
			if n == 0 || whole(cell) || size <= maxStatus && (rows[0][i] == "STATUS" || rows[0][i] == "STATE") {
				least[i] = max(least[i], size)
			}
		}
	}
	for width > 0 && total(widths...) > width {
		widest := -1
		for i, size := range widths {
			if size > max(least[i], minColumn) && (widest < 0 || size > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		widths[widest]--
	}
	return widths
}

// minColumn is a width below which a column is not cut.
const minColumn = 6

// maxStatus is the width of the longest status, with its mark; what is longer is a sentence.
const maxStatus = 14

// whole tells whether a cell is of no use if it is cut.
func whole(cell string) bool {
	_, noID := job.ParseID(cell)
	_, noTime := time.Parse(time.RFC3339, cell)
	return noID == nil || noTime == nil
}

// Record draws what is known of one thing: rows of a name and a value, values that are too
// long over several lines.
func Record(w io.Writer, rows [][2]string, s Style) error {
	names := 0
	for _, row := range rows {
		names = max(names, ansi.StringWidth(s.Text(row[0])))
	}
	var out strings.Builder
	for _, row := range rows {
		for _, line := range s.Line(Pad(s.Faint(s.Text(row[0])), names)+gap, row[1]) {
			out.WriteString(strings.TrimRight(line, " ") + "\n")
		}
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// total is the number of columns that rows of cells of these widths take; empty ones have none.
func total(widths ...int) int {
	sum := -len(gap)
	for _, n := range widths {
		if n > 0 {
			sum += n + len(gap)
		}
	}
	return sum
}
