package draw_test

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/weirworks/weir/draw"
	"github.com/weirworks/weir/internal/golden"
)

func TestGallery(t *testing.T) {
	t.Parallel()
	for name, p := range gallery() {
		for _, format := range []struct {
			file, format string
			options      draw.TerminalOptions
		}{
			{".txt", "terminal", draw.TerminalOptions{}},
			{"_color.txt", "terminal", draw.TerminalOptions{Color: true}},
			{"_ascii.txt", "terminal", draw.TerminalOptions{ASCII: true}},
			{"_narrow.txt", "terminal", draw.TerminalOptions{Width: 40}},
			{".svg", "svg", draw.TerminalOptions{}},
			{".mmd", "mermaid", draw.TerminalOptions{}},
			{".dot", "dot", draw.TerminalOptions{}},
		} {
			var b bytes.Buffer
			if err := draw.Write(&b, p, format.format, draw.Options{Terminal: format.options}); err != nil {
				t.Fatal(err)
			}
			golden.Check(t, filepath.Join("testdata", name+format.file), b.Bytes())
		}
	}
}
