package top

import (
	"time"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
)

// place is a tree, or the list of trees, and where the user is in it.
type place struct {
	root   job.ID       // a job of the tree; empty: the list
	limit  int          // of the list
	full   bool         // there may be more than the limit
	which  job.Filter   // of the list: what the server lists
	filter string       // what is shown of that
	open   map[key]bool // what was opened or closed by hand
	marked map[job.ID]bool
	folds  map[string]bool // what is folded in the graph by hand, or unfolded
	x, y   int             // how far the graph is scrolled
	follow bool            // scroll the graph to the selected box

	picture *picture // the last good one; nil before it
	stamp

	rows   []row
	sel    key // of the selected row
	cursor int // its number
	top    int // the number of the first row on the screen
}

func newPlace(root job.ID) *place {
	return &place{root: root, limit: listStep, open: make(map[key]bool), marked: make(map[job.ID]bool), folds: make(map[string]bool), sel: key{id: root}, follow: true}
}

// stamp is what is known of reading the same thing again and again.
type stamp struct {
	at   time.Time     // of the last good read
	took time.Duration // what reading it takes: the faster of the last two reads
	last time.Duration // what the last read took
	err  error         // of the last read
	due  time.Time     // when it is to be read
}

// good notes a read. One that took long alone was held up by something else than how much there is to read.
func (s *stamp) good(now time.Time, took time.Duration) {
	if s.at.IsZero() {
		s.last = took
	}
	s.took, s.last, s.at, s.err = min(took, s.last), took, now, nil
}

// pause is how long it is not read after it was.
func (s *stamp) pause(interval time.Duration) time.Duration { return max(interval, restOf*s.took) }

// read takes a picture that was read.
func (p *place) read(pic *picture, now time.Time, took time.Duration) {
	p.good(now, took)
	p.picture = pic
	p.full = len(pic.tops) == p.limit
	for id := range p.marked {
		if pic.nodes[id] == nil {
			delete(p.marked, id)
		}
	}
	p.lay()
}

// lay makes the rows anew and finds the selected one again. If it is gone, the one that is
// in its place now is selected.
func (p *place) lay() {
	if p.picture == nil {
		return
	}
	keep := p.sel.id
	if p.sel.finished {
		keep = ""
	}
	p.rows = outlineOf(p.picture, p.open, p.filter, keep)
	for n, r := range p.rows {
		if r.key() == p.sel {
			p.cursor = n
			return
		}
	}
	p.move(0)
}

// selected is the selected row, if there is any.
func (p *place) selected() (row, bool) {
	if p.cursor >= len(p.rows) {
		return row{}, false
	}
	return p.rows[p.cursor], true
}

// move selects the row that many further down.
func (p *place) move(by int) {
	p.cursor = max(min(p.cursor+by, len(p.rows)-1), 0)
	if r, ok := p.selected(); ok {
		p.sel = r.key()
	}
}

// to selects a job and opens what it is below.
func (p *place) to(n *node) {
	for up := n.parent; up != nil; up = up.parent {
		if by, ok := p.open[key{id: up.info.ID}]; ok && !by {
			delete(p.open, key{id: up.info.ID})
		}
	}
	p.sel = key{id: n.info.ID}
	p.lay()
}

// search shows only what has a text in it, and selects the first such job unless one is.
func (p *place) search(text string) {
	p.filter = text
	p.lay()
	if r, ok := p.selected(); !ok || !r.context {
		return
	}
	for n, r := range p.rows {
		if !r.context {
			p.move(n - p.cursor)
			return
		}
	}
}

// toggle opens or closes what is below a row.
func (p *place) toggle(r row, open bool) {
	p.open[r.key()] = open
	p.lay()
}

// show scrolls so that the selected row is on a screen of that many lines.
func (p *place) show(height int) {
	height = max(height, 1)
	p.top = min(p.top, p.cursor)
	p.top = max(p.top, p.cursor-height+1)
	p.top = max(min(p.top, len(p.rows)-height), 0)
}

// nextFailed is the next failed job behind the selected one, from the top again if there is
// none; of graphs, which fail because of others, only when they are all there is to see.
func (p *place) nextFailed() *node {
	if p.picture == nil {
		return nil
	}
	var first, next *node
	behind := false
	var look func(n *node)
	look = func(n *node) {
		if n.info.Status == statemachine.Failed && (!n.info.Graph || len(n.children) == 0) {
			if first == nil {
				first = n
			}
			if behind && next == nil {
				next = n
			}
		}
		if n.info.ID == p.sel.id {
			behind = true
		}
		for _, c := range n.children {
			look(c)
		}
	}
	for _, n := range p.picture.tops {
		look(n)
	}
	if next != nil {
		return next
	}
	return first
}
