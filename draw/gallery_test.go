package draw_test

import (
	"fmt"
	"strings"

	"github.com/weirworks/weir/draw"
	"github.com/weirworks/weir/statemachine"
)

// sketch makes a picture of lines like "a.out b.in 3/100": an edge, its size and limit.
// Nodes get the ports that their edges name; a line with one word is a node without any.
func sketch(title string, lines ...string) draw.Picture {
	p := draw.Picture{Title: title}
	node := func(id string) *draw.Node {
		for i := range p.Nodes {
			if p.Nodes[i].ID == id {
				return &p.Nodes[i]
			}
		}
		p.Nodes = append(p.Nodes, draw.Node{ID: id})
		return &p.Nodes[len(p.Nodes)-1]
	}
	add := func(ports []draw.Port, name string) []draw.Port {
		for _, p := range ports {
			if p.Name == name {
				return ports
			}
		}
		return append(ports, draw.Port{Name: name})
	}
	for _, line := range lines {
		words := strings.Fields(line)
		if len(words) == 1 {
			node(words[0])
			continue
		}
		from, out, _ := strings.Cut(words[0], ".")
		to, in, _ := strings.Cut(words[1], ".")
		e := draw.Edge{From: from, FromPort: out, To: to, ToPort: in, Size: -1, Limit: -1}
		for _, word := range words[2:] {
			switch word {
			case "back":
				e.Feedback = true
				continue
			case "closed":
				e.Closed = true
				continue
			}
			if n, _ := fmt.Sscanf(word, "%d/%d", &e.Size, &e.Limit); n == 0 {
				panic("no size: " + word)
			}
		}
		n := node(from)
		n.Out = add(n.Out, out)
		n = node(to)
		n.In = add(n.In, in)
		p.Edges = append(p.Edges, e)
	}
	return p
}

// of changes one node of a picture.
func of(p draw.Picture, id string, change func(n *draw.Node)) draw.Picture {
	for i := range p.Nodes {
		if p.Nodes[i].ID == id {
			change(&p.Nodes[i])
		}
	}
	return p
}

// album is a nested graph in a nested graph, running.
func album() draw.Picture {
	return draw.Picture{
		Title: "photos",
		Nodes: []draw.Node{
			{ID: "dir", Kind: draw.Input},
			{ID: "list", Type: "fs.List", Status: statemachine.Completed, In: []draw.Port{{Name: "dir"}}, Out: []draw.Port{{Name: "files", Closed: true}}},
			{ID: "album", Kind: draw.Group, Type: "Album", Status: statemachine.Running, In: []draw.Port{{Name: "files"}}, Out: []draw.Port{{Name: "pages"}, {Name: "failed"}}},
			{
				ID: "album/resize", Label: "resize", Type: "img.Resize", Status: statemachine.Running, Note: "×4", Group: "album",
				In: []draw.Port{{Name: "image"}, {Name: "width", Constant: "640"}}, Out: []draw.Port{{Name: "thumb"}, {Name: "failed"}},
			},
			{ID: "album/print", Label: "print", Kind: draw.Group, Status: statemachine.Suspended, Group: "album", In: []draw.Port{{Name: "thumb"}}, Out: []draw.Port{{Name: "pages"}}},
			{ID: "album/print/collect", Label: "collect", Type: "Collect", Status: statemachine.Suspended, Note: "waits: in empty", Group: "album/print", In: []draw.Port{{Name: "in"}}, Out: []draw.Port{{Name: "batch"}}},
			{ID: "album/print/layout", Label: "layout", Type: "Layout", Status: statemachine.Failed, Group: "album/print", In: []draw.Port{{Name: "batch"}}, Out: []draw.Port{{Name: "page"}}},
			{ID: "log", Type: "Log", Status: statemachine.Queued, In: []draw.Port{{Name: "lines"}}},
			{ID: "pages", Kind: draw.Output},
		},
		Edges: []draw.Edge{
			{From: "dir", To: "list", ToPort: "dir", Closed: true},
			{From: "list", FromPort: "files", To: "album", ToPort: "files", Size: 98, Limit: 100},
			{From: "album", FromPort: "files", To: "album/resize", ToPort: "image", Size: 3},
			{From: "album/resize", FromPort: "thumb", To: "album/print", ToPort: "thumb", Size: 100, Limit: 100},
			{From: "album/print", FromPort: "thumb", To: "album/print/collect", ToPort: "in", Size: 0},
			{From: "album/print/collect", FromPort: "batch", To: "album/print/layout", ToPort: "batch", Size: 1234},
			{From: "album/print/layout", FromPort: "page", To: "album/print", ToPort: "pages", Size: 0},
			{From: "album/print", FromPort: "pages", To: "album", ToPort: "pages", Size: 2},
			{From: "album/resize", FromPort: "failed", To: "album", ToPort: "failed", Size: 0},
			{From: "album", FromPort: "failed", To: "log", ToPort: "lines", Size: 0},
			{From: "album", FromPort: "pages", To: "pages", Size: 0},
		},
	}
}

// crossing wires go past frames without ports, as jobs in groups that are no graphs do.
func crossFrames() draw.Picture {
	p := sketch("through frames", "src.out a.in 1/10", "src.out b.in", "src.out c.in", "a.out sink.in", "b.out sink.in 4/5", "c.out a.again back")
	p.Nodes = append(p.Nodes, draw.Node{ID: "left", Kind: draw.Group}, draw.Node{ID: "deep", Kind: draw.Group, Group: "left"}, draw.Node{ID: "none", Kind: draw.Group, Label: "collapsed", Note: "12 jobs"})
	p = of(p, "a", func(n *draw.Node) { n.Group = "deep" })
	p = of(p, "b", func(n *draw.Node) { n.Group = "left" })
	return of(p, "c", func(n *draw.Node) { n.Group = "left" })
}

// many is a graph of 30 jobs in rows.
func many() draw.Picture {
	var lines []string
	for i := range 30 {
		for _, step := range []int{5, 7} {
			if i+step < 30 && (i+step)%3 != 1 {
				lines = append(lines, fmt.Sprintf("job%d.out job%d.in %d/20", i, i+step, i))
			}
		}
	}
	return sketch("many", lines...)
}

func wide() draw.Picture {
	var lines []string
	for i := range 10 {
		lines = append(lines, fmt.Sprintf("hub.out%d leaf%d.in", i, i%4), fmt.Sprintf("src%d.out hub.in%d %d/10", i%3, i, i))
	}
	return sketch("ten ports", lines...)
}

// gallery are the pictures that all formats are tested with.
func gallery() map[string]draw.Picture {
	diamond := of(sketch("", "list.files resize.image 3/100", "list.files stat.file 98/100", "resize.thumb collect.thumbs 0/100", "stat.size collect.sizes 100/100"),
		"list", func(n *draw.Node) { n.Type, n.Status = "fs.List", statemachine.Running })
	unicode := of(sketch("名前 \x1b[31m<b>&\"'", "照片.出 größe.ein 3/7", "größe.aus 🎉.in"),
		"照片", func(n *draw.Node) { n.Type, n.Note = "リスト", "×4 & <more>\nand \x00 \xff" })
	return map[string]draw.Picture{
		"album":    album(),
		"chain":    sketch("a chain", "read.lines parse.line", "parse.record store.record 17/50"),
		"circle":   sketch("circles", "a.out b.in", "b.out c.in", "c.out d.in 2/9", "c.again a.in back", "d.out d.in back", "d.out b.more"),
		"crossing": sketch("crossing", "a.x y.in", "a.y x.in", "b.x y.in", "b.y x.in", "c.x x.in", "c.y z.in", "a.z z.in"),
		"diamond":  diamond,
		"empty":    {},
		"fan":      sketch("fan", "split.out w1.in 1/9", "split.out w2.in 2/9", "split.out w3.in 5/9", "split.out w4.in 9/9", "split.out w5.in 0/9", "w1.out join.in 4/0", "w2.out join.in 4/0", "w3.out join.in 4/0", "w4.out join.in 4/0", "w5.out join.in 4/0"),
		"frames":   crossFrames(),
		"lonely":   sketch("lonely", "a.out b.in", "alone", "too"),
		"long":     sketch("long edges", "a.out b.in", "b.out c.in", "c.out d.in", "d.out e.in", "a.out e.start", "b.log e.log", "a.debug d.debug"),
		"inbox":    sketch("inbox", "a.yes box.in 2/8", "a.no box.in 2/8", "b.out box.in 2/8", "c.out pass.in", "d.out pass.in", "pass.out box.in 2/8", "e.out box.in 2/8", "f.done log.in closed", "g.done log.in closed", "box.out log.in", "log.again box.in 2/8 back", "e.err log.err closed", "f.err log.err"),
		"loop":     sketch("loop", "begin.out turn.in 3/100", "turn.done say.in", "turn.more step.in", "step.out turn.in 3/100 back", "step.err say.in"),
		"many":     many(),
		"swap":     sketch("swap", "a.one b.two", "a.two b.one", "b.three c.six", "b.four c.five", "b.five c.four", "b.six c.three"),
		"unicode":  unicode,
		"wide":     wide(),
	}
}
