package top

import (
	"time"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
)

// place is a tree, or the list of trees, and where the user is in it.
type place struct {
	root   job.ID // a job of the tree; empty: the list
	limit  int    // of the list
	full   bool   // there may be more than the limit
	filter string
	open   map[key]bool // what was opened or closed by hand

	picture *picture // the last good one; nil before it
	at      time.Time
	took    time.Duration // what reading it takes: the faster of the last two reads
	last    time.Duration // what the last read took

	rows   []row
	sel    key // of the selected row
	cursor int // its number
	top    int // the number of the first row on the screen
}

func newPlace(root job.ID) *place {
	return &place{root: root, limit: listStep, open: make(map[key]bool), sel: key{id: root}}
}

// read notes a good read. One that took long alone was held up by something else than the
// size of the tree.
func (p *place) read(pic *picture, now time.Time, took time.Duration) {
	if p.picture == nil {
		p.last = took
	}
	p.took, p.last = min(took, p.last), took
	p.picture, p.at = pic, now
	p.full = len(pic.tops) == p.limit
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

// move selects the row so many further down.
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

// show scrolls so that the selected row is on a screen of so many lines.
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
