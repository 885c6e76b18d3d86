package draw

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/statemachine"
)

// markup is what Mermaid and DOT have in common: nodes get short names, and each port of a
// frame is a node of its own, since neither knows ports of a frame.
type markup struct {
	scene *scene
	out   strings.Builder
}

func (m *markup) put(depth int, format string, args ...any) {
	m.out.WriteString(strings.Repeat("  ", depth))
	fmt.Fprintf(&m.out, format, args...)
	m.out.WriteByte('\n')
}

// end names the place where an edge begins or ends.
func (e *edge) ends() (from, to string) {
	from, to = nodeName(e.from), nodeName(e.to)
	if e.from.frame() {
		from = framePort(e.from, e.fromInside, e.fromPort)
	}
	if e.to.frame() {
		to = framePort(e.to, !e.toInside, e.toPort)
	}
	return from, to
}

func nodeName(n *node) string { return fmt.Sprintf("n%d", n.index) }

func framePort(n *node, in bool, port int) string {
	if in {
		return fmt.Sprintf("n%din%d", n.index, port)
	}
	return fmt.Sprintf("n%dout%d", n.index, port)
}

// Mermaid writes a picture as a flowchart for Mermaid. Its statuses are classes.
func Mermaid(w io.Writer, p Picture) error {
	s, err := stage(p)
	if err != nil {
		return err
	}
	m := &mermaid{markup{scene: s}}
	if s.title != "" {
		// A title is YAML, in which the characters' numbers are not known.
		m.put(0, "---\ntitle: \"%s\"\n---", strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(term.Clean(s.title)))
	}
	m.put(0, "flowchart LR")
	m.group(-1, 1)
	for _, e := range s.edges {
		m.edge(e)
	}
	m.classes()
	_, err = io.WriteString(w, m.out.String())
	return err
}

type mermaid struct{ markup }

// mermaidText writes a text for use in quotes: what could mean something to Mermaid, Markdown
// or HTML there becomes a character's number.
func mermaidText(s string) string {
	var b strings.Builder
	for _, r := range term.Clean(s) {
		if strings.ContainsRune("\"#&<>`\\*_", r) {
			fmt.Fprintf(&b, "#%d;", r)
		} else {
			b.WriteRune(r)
		}
	}
	return cmp.Or(b.String(), " ")
}

func (m *mermaid) group(parent, depth int) {
	for _, n := range m.scene.nodes {
		if n.parent != parent {
			continue
		}
		label := mermaidLabel(n)
		switch {
		case n.frame():
			m.put(depth, "subgraph %s [\"%s\"]", nodeName(n), label)
			m.ports(n, depth+1)
			m.group(n.index, depth+1)
			m.put(depth, "end")
		case n.Kind == Group:
			m.put(depth, "%s[[\"%s\"]]", nodeName(n), label)
		case n.Kind == Job:
			m.put(depth, "%s[\"%s\"]", nodeName(n), label)
		default:
			m.put(depth, "%s([\"%s\"])", nodeName(n), label)
		}
	}
}

func (m *mermaid) ports(n *node, depth int) {
	for i, p := range n.In {
		m.put(depth, "%s([\"%s\"])", framePort(n, true, i), mermaidText(p.name()))
	}
	for i, p := range n.Out {
		m.put(depth, "%s([\"%s\"])", framePort(n, false, i), mermaidText(p.name()))
	}
}

func mermaidLabel(n *node) string {
	lines := []string{mermaidText(n.Label)}
	if n.Type != "" {
		lines = append(lines, mermaidText(n.Type))
	}
	if n.Status != "" {
		lines = append(lines, mermaidText(term.Style{}.Status(n.Status)))
	}
	if n.Note != "" {
		lines = append(lines, mermaidText(n.Note))
	}
	for _, p := range n.In {
		if p.Constant != "" && !n.frame() {
			lines = append(lines, mermaidText(p.name()))
		}
	}
	if n.frame() {
		return strings.Join(lines, " · ") // Mermaid leaves room for one line
	}
	return strings.Join(lines, "<br/>")
}

func (m *mermaid) edge(e *edge) {
	from, to := e.ends()
	arrow := "-->"
	if e.Feedback || e.Closed {
		arrow = "-.->"
	}
	m.put(1, "%s %s|\"%s\"| %s", from, arrow, mermaidText(e.caption()), to)
}

// caption is what is written on an edge: its ports and what waits.
func (e *edge) caption() string {
	from, to := e.from.portAt(e.fromInside, e.fromPort), e.to.portAt(!e.toInside, e.toPort)
	text := from
	if from != to {
		text = from + " → " + to
	}
	if q := e.queue(); q != "" {
		text += " (" + q + ")"
	}
	return text
}

func (n *node) portAt(in bool, port int) string {
	if in {
		return n.In[port].Name
	}
	return n.Out[port].Name
}

// tones are the classes of statuses with their colours: fill, line and text.
var tones = []struct{ name, fill, line, text string }{
	{"running", "#cffafe", "#06b6d4", "#164e63"},
	{"completed", "#dcfce7", "#22c55e", "#14532d"},
	{"failed", "#fee2e2", "#ef4444", "#7f1d1d"},
	{"suspended", "#e0e7ff", "#6366f1", "#312e81"},
	{"waiting", "#fef3c7", "#f59e0b", "#78350f"},
	{"ended", "#e2e8f0", "#94a3b8", "#334155"},
}

func (m *mermaid) classes() {
	for _, t := range tones {
		var names []string
		for _, n := range m.scene.nodes {
			if n.Status != statemachine.New && !n.frame() && tone(n.Status) == t.name {
				names = append(names, nodeName(n))
			}
		}
		if len(names) > 0 {
			m.put(1, "classDef %s fill:%s,stroke:%s,color:%s", t.name, t.fill, t.line, t.text)
			m.put(1, "class %s %s", strings.Join(names, ","), t.name)
		}
	}
}
