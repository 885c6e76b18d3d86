package draw_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/weirworks/weir/draw"
)

var update = flag.Bool("update", false, "write the files in testdata anew")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s: got:\n%s\nwant:\n%s", name, got, want)
	}
}

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
			golden(t, name+format.file, b.Bytes())
		}
	}
}
