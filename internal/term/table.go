package term

import (
	"io"
	"strings"

	"charm.land/lipgloss/v2"
)

// Table draws rows in columns; the first row is the head.
func Table(w io.Writer, rows [][]string, s Style) error {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], lipgloss.Width(cell))
		}
	}
	var out strings.Builder
	for n, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			line.WriteString(pad(cell, widths[i]) + "  ")
		}
		text := strings.TrimRight(line.String(), " ")
		if n == 0 {
			text = s.Faint(text)
		}
		out.WriteString(text + "\n")
	}
	_, err := io.WriteString(w, out.String())
	return err
}
