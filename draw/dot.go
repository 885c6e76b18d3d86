package draw

import (
	"fmt"
	"io"
	"strings"

	"github.com/weirworks/weir/internal/term"
)

// DOT writes a picture as a digraph for Graphviz. Ports are cells of a table, groups are
// clusters.
func DOT(w io.Writer, p Picture) error {
	s, err := stage(p)
	if err != nil {
		return err
	}
	d := &dot{markup{scene: s}}
	d.put(0, "digraph {")
	d.put(1, "graph [rankdir=LR, fontname=\"Helvetica\", fontsize=12, nodesep=0.4, ranksep=0.8, style=\"rounded,dashed\", color=\"#818cf8\"]")
	d.put(1, "node [shape=plain, fontname=\"Helvetica\", fontsize=11]")
	d.put(1, "edge [fontname=\"Helvetica\", fontsize=9, color=\"#64748b\", arrowsize=0.7]")
	if s.title != "" {
		d.put(1, "label=<%s>\n  labelloc=t", dotText(s.title))
	}
	d.group(-1, 1)
	for _, e := range s.edges {
		d.edge(e)
	}
	d.put(0, "}")
	_, err = io.WriteString(w, d.out.String())
	return err
}

type dot struct{ markup }

// dotText writes a text for use in an HTML-like label.
func dotText(s string) string {
	text := escape(term.Clean(s))
	if strings.TrimSpace(text) == "" {
		return "&#160;"
	}
	return text
}

func (d *dot) group(parent, depth int) {
	for _, n := range d.scene.nodes {
		if n.parent != parent {
			continue
		}
		switch {
		case n.frame():
			d.put(depth, "subgraph cluster_%s {", nodeName(n))
			d.put(depth+1, "label=<%s>", strings.Join(d.lines(n), "<BR/>"))
			d.ports(n, depth+1)
			d.group(n.index, depth+1)
			d.put(depth, "}")
		case n.Kind == Input || n.Kind == Output:
			d.put(depth, "%s [shape=box, style=\"rounded,filled\", color=\"#a5b4fc\", fillcolor=\"#eef2ff\", label=<%s>]", nodeName(n), strings.Join(d.lines(n), "<BR/>"))
		default:
			d.put(depth, "%s [label=<%s>]", nodeName(n), d.table(n))
		}
	}
}

func (d *dot) ports(n *node, depth int) {
	for i, p := range n.In {
		d.put(depth, "%s [shape=box, style=rounded, label=<%s>]", framePort(n, true, i), dotText(p.name()))
	}
	for i, p := range n.Out {
		d.put(depth, "%s [shape=box, style=rounded, label=<%s>]", framePort(n, false, i), dotText(p.name()))
	}
}

func (d *dot) lines(n *node) []string {
	lines := []string{"<B>" + dotText(n.Label) + "</B>"}
	if n.Type != "" {
		lines = append(lines, dotText(n.Type))
	}
	if n.Status != "" {
		lines = append(lines, dotText(term.Style{}.Status(n.Status)))
	}
	if n.Note != "" {
		lines = append(lines, dotText(n.Note))
	}
	return lines
}

// table is a job with its In ports on the left and its Out ports on the right.
func (d *dot) table(n *node) string {
	line, fill := "#94a3b8", "#ffffff"
	for _, t := range tones {
		if n.Status != "" && t.name == tone(n.Status) {
			line, fill = t.line, t.fill
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<TABLE BORDER="1" STYLE="ROUNDED" COLOR="%s" BGCOLOR="%s" CELLBORDER="0" CELLSPACING="0" CELLPADDING="4">`, line, fill)
	fmt.Fprintf(&b, `<TR><TD COLSPAN="2">%s</TD></TR>`, strings.Join(d.lines(n), "<BR/>"))
	for i := range max(len(n.In), len(n.Out)) {
		b.WriteString("<TR>")
		if i < len(n.In) {
			fmt.Fprintf(&b, `<TD PORT="in%d" ALIGN="LEFT">%s</TD>`, i, dotText(n.In[i].name()))
		} else {
			b.WriteString("<TD></TD>")
		}
		if i < len(n.Out) {
			fmt.Fprintf(&b, `<TD PORT="out%d" ALIGN="RIGHT">%s</TD>`, i, dotText(n.Out[i].name()))
		} else {
			b.WriteString("<TD></TD>")
		}
		b.WriteString("</TR>")
	}
	b.WriteString("</TABLE>")
	return b.String()
}

func (d *dot) edge(e *edge) {
	from, to := e.ends()
	if !e.from.frame() && e.from.Kind != Input {
		from += fmt.Sprintf(":out%d:e", e.fromPort)
	}
	if !e.to.frame() && e.to.Kind != Output {
		to += fmt.Sprintf(":in%d:w", e.toPort)
	}
	var attributes []string
	if q := e.queue(); q != "" {
		attributes = append(attributes, "label=<"+dotText(q)+">")
	}
	if e.Closed {
		attributes = append(attributes, "style=dashed")
	}
	if e.Feedback {
		attributes = append(attributes, "constraint=false")
	}
	d.put(1, "%s -> %s%s", from, to, attributeList(attributes))
}

func attributeList(attributes []string) string {
	if len(attributes) == 0 {
		return ""
	}
	return " [" + strings.Join(attributes, ", ") + "]"
}
