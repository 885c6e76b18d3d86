package store

import (
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// MaxPatch is the greatest number of jobs of a graph that is patched.
const MaxPatch = 400

// Patch is how a running graph becomes another one.
type Patch struct {
	From, To string // digests of the definitions
	// Nodes are the jobs of the new definition, the graph's own first, and which number
	// each has in the tree. Fresh tells those that are yet to be created.
	Nodes   []job.Node
	Numbers []int
	Fresh   []bool
	// Remove are jobs that the new definition does not have.
	Remove []job.ID
	// Retyped are ports of jobs that stay whose messages get another Go type, and Types what MessageTypes says of the new definition.
	Retyped []Retyped
	Types   map[string]string
}

// Feeds lists, for each port of the plan that edges lead to, the ports that they lead from:
// one for each edge end, feedback not counted.
func (p *Patch) Feeds() map[job.Target][]job.Target {
	feeds := make(map[job.Target][]job.Target)
	for i := range p.Nodes {
		for _, q := range p.Nodes[i].Ports {
			for _, e := range q.Edges {
				for _, t := range e {
					if !t.Feedback {
						feeds[t] = append(feeds[t], job.Target{Node: i, Dir: q.Dir, Port: q.Name})
					}
				}
			}
		}
	}
	for i := range p.Nodes { // those that lost all their sources, too
		for _, q := range p.Nodes[i].Ports {
			if t := (job.Target{Node: i, Dir: q.Dir, Port: q.Name}); feeds[t] == nil && (q.Dir == port.Input || p.Nodes[i].Graph) {
				feeds[t] = nil
			}
		}
	}
	return feeds
}
