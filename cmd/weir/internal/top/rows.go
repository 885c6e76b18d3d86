package top

import (
	"strings"

	"github.com/weirworks/weir/job"
)

// row is a line of the tree: a job, or what stands for the finished jobs below one.
type row struct {
	node     *node
	stem     string // what leads down beside it
	last     bool   // of its brothers and sisters
	below    bool   // it has a parent in the tree
	finished int    // that many finished jobs below node, if this row is about them
	marker   marker
	context  bool // it is there for what is below it, and does not match the filter
}

// marker says what can be done about what is below a row.
type marker byte

const (
	leaf marker = iota
	isOpen
	isClosed
)

// key finds a row again in a newer picture.
type key struct {
	id       job.ID
	finished bool
}

func (r row) key() key { return key{r.node.info.ID, r.finished > 0} }

// Finished jobs are folded into one row when there are that many of them next to others
// that are not, or that many in all.
const (
	foldFew  = 4
	foldMany = 20
)

// outline lays the rows of a picture out.
type outline struct {
	open   map[key]bool // what was opened or closed by hand
	filter string       // in lower case; only what matches is shown, and what it is below
	keep   map[*node]bool
	hits   []bool // by the number of a job: it matches, or one below it does
	rows   []row
}

// outlineOf returns the rows of a picture. The job with the ID keep is not folded away.
func outlineOf(p *picture, open map[key]bool, filter string, keep job.ID) []row {
	o := outline{open: open, filter: strings.ToLower(filter), keep: make(map[*node]bool)}
	for n := p.nodes[keep]; n != nil; n = n.parent {
		o.keep[n] = true
	}
	if o.filter != "" {
		o.hits = make([]bool, len(p.nodes))
		for _, n := range p.tops {
			o.mark(n)
		}
	}
	for _, n := range p.tops {
		if o.shows(n) {
			o.add(row{node: n}, "")
		}
	}
	return o.rows
}

// mark finds out which jobs match the filter or have one below that does.
func (o *outline) mark(n *node) bool {
	hit := strings.Contains(n.text, o.filter)
	for _, c := range n.children {
		if o.mark(c) {
			hit = true
		}
	}
	o.hits[n.number] = hit
	return hit
}

func (o *outline) shows(n *node) bool { return o.filter == "" || o.hits[n.number] }

// add adds a job's row and those below it, which stem leads to.
func (o *outline) add(r row, stem string) {
	n := r.node
	r.context = o.filter != "" && !strings.Contains(n.text, o.filter)
	if len(n.children) > 0 {
		if r.marker = isClosed; o.isOpen(n) {
			r.marker = isOpen
		}
	}
	o.rows = append(o.rows, r)
	if r.marker == isOpen {
		o.addChildren(n, stem)
	}
}

// isOpen tells whether what is below a job is shown: unless it was closed by hand, or all
// below has come to its end.
func (o *outline) isOpen(n *node) bool {
	if o.filter != "" {
		return true
	}
	if by, ok := o.open[key{id: n.info.ID}]; ok {
		return by
	}
	return !n.settled || n.parent == nil || o.keep[n]
}

func (o *outline) addChildren(n *node, stem string) {
	live, finished := o.split(n)
	unfolded := o.open[key{n.info.ID, true}]
	for k, c := range live {
		o.addChild(c, stem, k == len(live)-1 && len(finished) == 0)
	}
	if len(finished) == 0 {
		return
	}
	r := row{node: n, stem: stem, last: !unfolded, below: true, finished: len(finished), marker: isClosed}
	if unfolded {
		r.marker = isOpen
	}
	o.rows = append(o.rows, r)
	if unfolded {
		for k, c := range finished {
			o.addChild(c, stem, k == len(finished)-1)
		}
	}
}

func (o *outline) addChild(c *node, stem string, last bool) {
	below := stem + "│ "
	if last {
		below = stem + "  "
	}
	o.add(row{node: c, stem: stem, last: last, below: true}, below)
}

// split parts the children of a job into those that get rows and those that are folded.
func (o *outline) split(n *node) (live, finished []*node) {
	if o.filter != "" {
		for _, c := range n.children {
			if o.hits[c.number] {
				live = append(live, c)
			}
		}
		return live, nil
	}
	count := 0
	for _, c := range n.children {
		if c.settled {
			count++
		}
	}
	if count < foldFew || count == len(n.children) && count <= foldMany {
		return n.children, nil
	}
	for _, c := range n.children {
		if c.settled && !o.keep[c] {
			finished = append(finished, c)
		} else {
			live = append(live, c)
		}
	}
	return live, finished
}
