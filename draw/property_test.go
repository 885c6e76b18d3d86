package draw_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"

	"github.com/weirworks/weir/draw"
	"github.com/weirworks/weir/internal/golden"
	"github.com/weirworks/weir/statemachine"
)

// anyPicture makes a picture of jobs, groups in groups, inputs and outputs.
func anyPicture(t *rapid.T) draw.Picture {
	p := draw.Picture{Title: rapid.SampledFrom([]string{"", "title"}).Draw(t, "title")}
	groups := []string{""}
	in := func(id string) bool {
		return p.Nodes[slices.IndexFunc(p.Nodes, func(n draw.Node) bool { return n.ID == id })].Kind != draw.Input
	}
	out := func(id string) bool {
		return p.Nodes[slices.IndexFunc(p.Nodes, func(n draw.Node) bool { return n.ID == id })].Kind != draw.Output
	}
	var ids []string
	for i := range rapid.IntRange(0, 10).Draw(t, "nodes") {
		n := draw.Node{
			ID:     fmt.Sprintf("n%d", i),
			Kind:   draw.Kind(rapid.SampledFrom([]int{0, 0, 0, 0, 1, 1, 2, 3}).Draw(t, "kind")),
			Group:  rapid.SampledFrom(groups).Draw(t, "group"),
			Type:   rapid.SampledFrom([]string{"", "Worker"}).Draw(t, "type"),
			Note:   rapid.SampledFrom([]string{"", "×4", "日本"}).Draw(t, "note"),
			Status: rapid.SampledFrom([]statemachine.Status{"", statemachine.Running, statemachine.Failed}).Draw(t, "status"),
		}
		if n.Kind == draw.Job || n.Kind == draw.Group {
			n.In = []draw.Port{{Name: "a"}, {Name: "b", Constant: "1"}}
			n.Out = []draw.Port{{Name: "a"}, {Name: "b", Closed: true}}
		}
		if n.Kind == draw.Group {
			groups = append(groups, n.ID)
		}
		p.Nodes = append(p.Nodes, n)
		ids = append(ids, n.ID)
	}
	ports := rapid.SampledFrom([]string{"a", "b"})
	for range rapid.IntRange(0, 20).Draw(t, "edges") {
		sources, targets := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !out(id) }), slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !in(id) })
		if len(sources) == 0 || len(targets) == 0 {
			break
		}
		e := draw.Edge{
			From: rapid.SampledFrom(sources).Draw(t, "from"), To: rapid.SampledFrom(targets).Draw(t, "to"),
			Size: rapid.IntRange(-1, 3).Draw(t, "size"), Limit: rapid.IntRange(-1, 3).Draw(t, "limit"),
			Feedback: rapid.Bool().Draw(t, "feedback"), Closed: rapid.Bool().Draw(t, "closed"),
		}
		for _, n := range p.Nodes {
			if n.ID == e.From && n.Kind != draw.Input {
				e.FromPort = ports.Draw(t, "out")
			}
			if n.ID == e.To && n.Kind != draw.Output {
				e.ToPort = ports.Draw(t, "in")
			}
		}
		p.Edges = append(p.Edges, e)
	}
	return p
}

func render(t interface{ Fatal(...any) }, p draw.Picture, format string, o draw.TerminalOptions) string {
	var b bytes.Buffer
	if err := draw.Write(&b, p, format, draw.Options{Terminal: o}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestAnyPicture(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := anyPicture(t)
		width := rapid.IntRange(1, 120).Draw(t, "width")
		for _, format := range draw.Formats() {
			got := render(t, p, format, draw.TerminalOptions{})
			if got != render(t, p, format, draw.TerminalOptions{}) {
				t.Fatalf("%s differs when drawn again", format)
			}
			for _, n := range p.Nodes {
				if !strings.Contains(got, n.ID) {
					t.Fatalf("%s lacks %s:\n%s", format, n.ID, got)
				}
			}
		}
		for _, o := range []draw.TerminalOptions{{Width: width}, {Width: width, ASCII: true}, {Width: width, Color: true}} {
			text := render(t, p, "terminal", o)
			if o.ASCII && strings.ContainsFunc(text, func(r rune) bool { return r > unicode.MaxASCII }) {
				t.Fatalf("not ASCII:\n%s", text)
			}
			for line := range strings.Lines(text) {
				if got := ansi.StringWidth(strings.TrimSuffix(line, "\n")); got > width {
					t.Fatalf("%q takes %d columns of %d", line, got, width)
				}
			}
		}
		wellFormed(t, render(t, p, "svg", draw.TerminalOptions{}))
		plain, color := render(t, p, "terminal", draw.TerminalOptions{}), render(t, p, "terminal", draw.TerminalOptions{Color: true})
		if got := uncolored(color); got != plain {
			t.Fatalf("without its colours:\n%s\nis not:\n%s", got, plain)
		}
	})
}

// Each wire, or each group of wires that join, has one arrowhead, and in front of it its
// number, on a terminal as in SVG.
func TestHeads(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := anyPicture(t)
		text, svg := render(t, p, "terminal", draw.TerminalOptions{}), render(t, p, "svg", draw.TerminalOptions{})
		heads := len(regexp.MustCompile(`[▶▷]\s`).FindAllString(text, -1)) // where wires merge, a line is behind them
		if want := strings.Count(svg, `class="head"`); heads != want {
			t.Fatalf("%d arrowheads instead of %d:\n%s", heads, want, text)
		}
		for _, part := range strings.Split(svg, `<g class="queue `)[1:] {
			_, part, _ = strings.Cut(part, "<text")
			_, part, _ = strings.Cut(part, ">")
			badge, _, _ := strings.Cut(part, "<")
			found := regexp.MustCompile("[─╌┬┴┼├╭╰]"+regexp.QuoteMeta(badge)+"[─╌][▶▷]").FindAllString(text, -1)
			if len(found) != strings.Count(svg, ">"+badge+"</text></g>") {
				t.Fatalf("%q is there %d times:\n%s", badge, len(found), text)
			}
		}
	})
}

// uncolored leaves out escape sequences that set colours.
func uncolored(s string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(s, "\x1b[")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		_, s, _ = strings.Cut(after, "m")
	}
}

func wellFormed(t interface{ Fatalf(string, ...any) }, text string) {
	d := xml.NewDecoder(strings.NewReader(text))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("%v in:\n%s", err, text)
		}
	}
}

// tagged is a picture with one text in all places that take one.
func tagged(text string) draw.Picture {
	port := []draw.Port{{Name: "p" + text, Constant: text, Closed: true}, {Name: "q" + text}}
	return draw.Picture{
		Title: "t" + text,
		Nodes: []draw.Node{
			{ID: "a", Label: text, Type: "t" + text, Note: "n" + text, Status: "running", In: port, Out: port},
			{ID: "g", Kind: draw.Group, Label: text, Type: "t" + text, Note: "n" + text, Status: "failed", In: port, Out: port},
			{ID: "g" + "/" + text, Label: text, Group: "g", In: port, Out: port},
			{ID: "in", Kind: draw.Input, Label: "i" + text},
			{ID: "out", Kind: draw.Output, Label: "o" + text},
		},
		Edges: []draw.Edge{
			{From: "in", To: "a", ToPort: "p" + text},
			{From: "a", FromPort: "p" + text, To: "g", ToPort: "p" + text, Size: 3, Limit: 4},
			{From: "g", FromPort: "p" + text, To: "g/" + text, ToPort: "q" + text},
			{From: "g/" + text, FromPort: "q" + text, To: "out", Closed: true},
		},
	}
}

// Whatever a text is, it stays a text: the drawings have the lines and marks of one with a
// harmless text.
func FuzzTexts(f *testing.F) {
	for _, s := range []string{"plain", "", " ", `"quoted" \ 'so'`, "<b>&amp;</b>", "]]>", "two\nlines\r", "\x1b[31m\x00\xff", "日本語 🎉", "`code` *b* #1;", "--> x", "end", "\u202e\u2028", "e\u0301\u0301", `\`, "|{}[]()"} {
		f.Add(s)
	}
	harmless := tagged("x")
	f.Fuzz(func(t *testing.T, text string) {
		p := tagged(text)
		if text == "" {
			return // a port needs a name
		}
		for line := range strings.Lines(render(t, p, "terminal", draw.TerminalOptions{})) {
			if line = strings.TrimSuffix(line, "\n"); strings.ContainsAny(line, "\x1b\r\x00\u202e\u2028\n") || !utf8.ValidString(line) {
				t.Errorf("on a terminal: %q", line)
			}
		}
		svg := render(t, p, "svg", draw.TerminalOptions{})
		wellFormed(t, svg)
		if got, want := strings.Count(svg, "<"), strings.Count(render(t, harmless, "svg", draw.TerminalOptions{}), "<"); got != want {
			t.Errorf("%d marks in SVG instead of %d", got, want)
		}
		for format, marks := range map[string]string{"mermaid": "\"`", "dot": "<>\"{}"} {
			got, want := render(t, p, format, draw.TerminalOptions{}), render(t, harmless, format, draw.TerminalOptions{})
			if strings.Count(got, "\n") != strings.Count(want, "\n") {
				t.Errorf("%s has other lines than it should:\n%s", format, got)
			}
			_, got, _ = strings.Cut(got, "flowchart") // a title has its own way to escape quotes
			_, want, _ = strings.Cut(want, "flowchart")
			for _, mark := range marks {
				if strings.Count(got, string(mark)) != strings.Count(want, string(mark)) {
					t.Errorf("%s has another number of %q than it should:\n%s", format, mark, got)
				}
			}
		}
	})
}

func BenchmarkWrite(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 2))
	var lines []string
	for i := range 600 {
		lines = append(lines, fmt.Sprintf("job%d.out%d job%d.in %d/100", i/2, i%3, i/2+1+random.IntN(20), i%120))
	}
	p := sketch("big", lines...)
	for _, format := range draw.Formats() {
		b.Run(format, func(b *testing.B) {
			for b.Loop() {
				render(b, p, format, draw.TerminalOptions{Color: true})
			}
		})
	}
}

func TestProblems(t *testing.T) {
	t.Parallel()
	p := draw.Picture{
		Title: "wrong",
		Nodes: []draw.Node{
			{ID: "a", Group: "b", Out: []draw.Port{{Name: "x"}, {Name: "x"}, {}}},
			{ID: "b"},
			{ID: "b"},
			{},
			{ID: "c", Kind: 7},
			{ID: "d", Kind: draw.Output, Out: []draw.Port{{Name: "x"}}},
		},
		Edges: []draw.Edge{{From: "a", FromPort: "x", To: "nobody"}, {From: "b", FromPort: "none", To: "d"}, {From: "nobody"}, {From: "a", FromPort: "x", To: "b", ToPort: "none"}},
	}
	circle := draw.Picture{Nodes: []draw.Node{{ID: "a", Kind: draw.Group, Group: "b"}, {ID: "b", Kind: draw.Group, Group: "a"}}}
	var b bytes.Buffer
	for _, format := range draw.Formats() {
		err := draw.Write(&b, p, format, draw.Options{})
		if err == nil {
			t.Fatalf("%s draws it", format)
		}
		golden.Check(t, filepath.Join("testdata", "problems.txt"), []byte(err.Error()+"\n"))
		if err := draw.Write(&b, circle, format, draw.Options{}); err == nil || !strings.Contains(err.Error(), "in each other") {
			t.Errorf("groups in each other: %v", err)
		}
	}
	if b.Len() > 0 {
		t.Errorf("something is drawn: %s", b.String())
	}
	if err := draw.Write(&b, circle, "png", draw.Options{}); err == nil || !strings.Contains(err.Error(), "svg") {
		t.Errorf("an unknown format: %v", err)
	}
	broken := errors.New("broken")
	for _, format := range draw.Formats() {
		if err := draw.Write(failing{broken}, album(), format, draw.Options{}); !errors.Is(err, broken) {
			t.Errorf("%s on a writer that fails: %v", format, err)
		}
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }
