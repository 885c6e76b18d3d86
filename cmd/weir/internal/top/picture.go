package top

import (
	"slices"
	"strings"
	"time"

	"github.com/weirworks/weir/internal/explain"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// picture is a tree of jobs, or a list of them, at one moment. It is made in the background
// and only read afterwards.
type picture struct {
	jobs   []*job.Info
	tops   []*node // those without parent, or all that are listed
	nodes  map[job.ID]*node
	counts map[statemachine.Status]int
	words  *explain.Tree
	drawn  *drawn // nil unless it was asked for
}

// node is a job in a picture.
type node struct {
	info     *job.Info
	parent   *node
	children []*node
	settled  bool   // it and all below it are completed or terminated
	number   int    // of all in the picture
	text     string // what a filter looks into, in lower case
}

// whyLines is how many reasons a graph is explained with, about.
const whyLines = 50

// newPicture is the picture of a tree.
func newPicture(jobs []*job.Info, now time.Time) *picture { return pictureOf(jobs, now, true) }

// newList is the picture of a list of jobs, whatever tree each is of.
func newList(jobs []*job.Info, now time.Time) *picture { return pictureOf(jobs, now, false) }

func pictureOf(jobs []*job.Info, now time.Time, tree bool) *picture {
	p := &picture{jobs: jobs, nodes: make(map[job.ID]*node, len(jobs)), counts: make(map[statemachine.Status]int), words: explain.NewTree(jobs, now)}
	p.words.Most = whyLines
	all := make([]node, len(jobs))
	for n, i := range jobs {
		all[n].info, all[n].number = i, n
		all[n].text = strings.ToLower(i.Name + "\n" + i.Type + "\n" + string(i.Status) + "\n" + string(i.ID))
		p.nodes[i.ID] = &all[n]
		p.counts[i.Status]++
	}
	for n := range all {
		one := &all[n]
		if tree {
			one.parent = p.nodes[one.info.Parent]
		}
		if one.parent == nil {
			p.tops = append(p.tops, one)
		} else {
			one.parent.children = append(one.parent.children, one)
		}
	}
	for _, one := range p.tops {
		one.settle()
	}
	return p
}

func (n *node) settle() bool {
	n.settled = n.info.Status.Settled()
	for _, c := range n.children {
		below := c.settle()
		n.settled = n.settled && below
	}
	return n.settled
}

// name is what a job is called next to its brothers and sisters.
func (n *node) name() string {
	if n.info.Name != "" {
		return n.info.Name
	}
	return n.info.Type
}

// path is the names of the job and all it is below, cleaned.
func (n *node) path() string {
	path := clean(n.name())
	for up := n.parent; up != nil; up = up.parent {
		path = clean(up.name()) + "/" + path
	}
	return path
}

// wire is a wire at a port of a job, seen from that job.
type wire struct {
	own    string // the job's port
	other  string // "name.port" of the other end
	waits  int64  // messages in the In port that it leads to
	limit  int    // of that port
	passed int64  // messages that ever left the port that it comes from
}

// wires are those that bring messages to a job, and those that take them away. Wires
// connect the jobs of a graph with each other and with the graph itself.
func (p *picture) wires(n *node) (fed, feeds []wire) {
	for _, from := range n.near() {
		for _, out := range from.info.Ports {
			for _, edge := range out.Edges {
				for _, end := range edge {
					if from != n && end.Job != n.info.ID {
						continue
					}
					w, to := p.wire(out, end)
					if from == n {
						w.own, w.other = out.Name, to+"."+end.Port
						feeds = append(feeds, w)
					}
					if end.Job == n.info.ID {
						w.own, w.other = end.Port, from.name()+"."+out.Name
						fed = append(fed, w)
					}
				}
			}
		}
	}
	return fed, feeds
}

// near are the jobs that may be wired to a job, itself among them.
func (n *node) near() []*node {
	out := append([]*node{n}, n.children...)
	if n.parent == nil {
		return out
	}
	out = append(out, n.parent)
	for _, c := range n.parent.children {
		if c != n {
			out = append(out, c)
		}
	}
	return out
}

// wire is what is known of a wire between two ports, and the name of the job it leads to.
func (p *picture) wire(from job.PortInfo, end job.PortRef) (w wire, to string) {
	w.passed = from.Total
	n := p.nodes[end.Job]
	if n == nil {
		return w, explain.Number(end.Job)
	}
	if in, ok := n.info.Port(end.Dir, end.Port); ok {
		w.waits, w.limit = in.Waiting, in.Limit
	}
	return w, n.name()
}

// load is how many messages wait in a job's In ports, and the fullest of those that are bounded.
func load(i *job.Info) (waiting int64, fullest job.PortInfo) {
	for _, p := range i.Ports {
		if p.Dir != port.Input {
			continue
		}
		waiting += p.Waiting
		if p.Limit > 0 && (fullest.Limit == 0 || p.Waiting*int64(fullest.Limit) > fullest.Waiting*int64(p.Limit)) {
			fullest = p
		}
	}
	return waiting, fullest
}

// named are the ports of a job that are there: not the one that stands for any.
func (n *node) named(dirs ...port.Dir) []job.PortInfo {
	var out []job.PortInfo
	for _, p := range n.info.Ports {
		if p.Name != port.Any && slices.Contains(dirs, p.Dir) {
			out = append(out, p)
		}
	}
	return out
}
