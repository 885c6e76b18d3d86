package draw

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// list writes a picture that is too wide for the terminal: one node a line, in the order
// of the layout, with its wires in words.
func (d *terminal) list() string {
	var b strings.Builder
	d.listGroup(&b, -1, 0)
	return b.String()
}

func (d *terminal) listGroup(b *strings.Builder, parent, depth int) {
	var members []*node
	for _, n := range d.scene.nodes {
		if n.parent == parent {
			members = append(members, n)
		}
	}
	slices.SortStableFunc(members, func(x, y *node) int {
		a, b := d.placed.Nodes[x.index], d.placed.Nodes[y.index]
		return cmp.Or(cmp.Compare(a.X, b.X), cmp.Compare(a.Y, b.Y))
	})
	for _, n := range members {
		d.listNode(b, n, depth)
		if n.frame() {
			d.listGroup(b, n.index, depth+1)
		}
	}
}

// listNode writes a node and its wires, wrapped between two of them.
func (d *terminal) listNode(b *strings.Builder, n *node, depth int) {
	indent := min(2*depth, d.options.Width/3)
	words := d.listHead(n)
	for _, e := range d.scene.edges {
		if e.to == n {
			words = append(words, d.ownName(n, e.ToPort, e.toInside)+d.arrow(0)+" "+d.endName(e.from, e.FromPort)+d.listQueue(e))
		}
	}
	for _, e := range d.scene.edges {
		if e.from == n {
			words = append(words, d.ownName(n, e.FromPort, !e.fromInside)+d.arrow(1)+" "+d.endName(e.to, e.ToPort)+d.listQueue(e))
		}
	}
	d.wrap(b, words, indent)
}

// wrap writes words with two blanks between them, on as many lines as they need.
func (d *terminal) wrap(b *strings.Builder, words []string, indent int) {
	column := indent
	b.WriteString(strings.Repeat(" ", indent))
	for i, word := range words {
		width := ansi.StringWidth(word)
		switch {
		case i == 0:
		case column+2+width <= d.options.Width:
			b.WriteString("  ")
			column += 2
		default:
			column = min(indent+4, d.options.Width/2)
			b.WriteString("\n" + strings.Repeat(" ", column))
		}
		if room := max(1, d.options.Width-column); width > room {
			word = ansi.Truncate(word, room, "")
			width = ansi.StringWidth(word)
		}
		b.WriteString(word)
		column += width
	}
	b.WriteByte('\n')
}

// listHead are the words for a node itself.
func (d *terminal) listHead(n *node) []string {
	label := d.clean(n.Label)
	switch {
	case n.frame():
		label += ":"
	case n.Kind == Input:
		label = d.chars.terminal + " " + label
	case n.Kind == Output:
		label += " " + d.chars.terminal
	}
	words := []string{d.style.Bold(label)}
	if n.Type != "" {
		words = append(words, d.style.Faint(d.clean(n.Type)))
	}
	status := d.status(n)
	if text := cmp.Or(status.shown, status.text); text != "" {
		words = append(words, text)
	}
	for _, p := range n.In {
		if p.Constant != "" {
			words = append(words, d.portName(p))
		}
	}
	return words
}

func (d *terminal) arrow(direction int) string {
	return d.style.Text([2]string{"←", "→"}[direction])
}

// ownName names a node's own end of a wire where it has several ports.
func (d *terminal) ownName(n *node, port string, out bool) string {
	ports := n.In
	if out {
		ports = n.Out
	}
	if len(ports) < 2 {
		return ""
	}
	return d.clean(port) + " "
}

// endName names the other end of a wire: job.port.
func (d *terminal) endName(n *node, port string) string {
	if n.Kind == Input || n.Kind == Output {
		return d.clean(n.Label)
	}
	return d.clean(n.Label + "." + port)
}

func (d *terminal) listQueue(e *edge) string {
	var notes []string
	if q := d.style.Text(e.queue()); q != "" {
		notes = append(notes, paintOf(e.fill()).apply(d.style, q))
	}
	if e.Closed {
		notes = append(notes, "closed")
	}
	if len(notes) == 0 {
		return ""
	}
	return fmt.Sprintf(" (%s)", strings.Join(notes, ", "))
}
