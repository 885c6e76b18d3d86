package job

import (
	"fmt"

	"github.com/weirworks/weir/port"
)

// checkFanOut refuses a plan with a port that feeds more than MaxFanOut others: Redis would do nothing but wake those.
func (p *Plan) checkFanOut() error {
	counted := map[portAt]int{}
	for i := range p.Nodes {
		for _, pt := range p.Nodes[i].Ports {
			if n := p.fanOut(portAt{i, pt.Dir, pt.Name}, counted); n > MaxFanOut {
				return fmt.Errorf("%w: %s: port %s feeds %d ports of jobs (two instances count as one), at most %d are allowed: "+
					"put jobs in between that pass messages on, each to some of the others, or publish to a channel",
					ErrTooLarge, p.which(i), pt.Name, n, MaxFanOut)
			}
		}
	}
	return nil
}

// portAt is a port of a plan.
type portAt struct {
	node int
	dir  port.Dir
	name string
}

// fanOut returns how many ports that keep their messages a port feeds, itself if it is one of them, as MaxFanOut counts. What
// is counted already is not counted again.
func (p *Plan) fanOut(at portAt, counted map[portAt]int) int {
	if n, ok := counted[at]; ok {
		return n
	}
	n := 0
	for _, pt := range p.Nodes[at.node].Ports {
		if pt.Dir != at.dir || pt.Name != at.name {
			continue
		}
		if len(pt.Edges) == 0 {
			return 1
		}
		counted[at] = 0 // in a circle of graphs' ports, which keeps nothing
		for _, e := range pt.Edges {
			reached := 0
			for _, t := range e {
				reached = min(reached+p.fanOut(portAt{t.Node, t.Dir, t.Port}, counted), 1000*MaxFanOut)
			}
			if len(e) > 1 {
				reached = (reached + 1) / 2 // a message goes to one of them
			}
			n += reached
		}
	}
	counted[at] = n
	return n
}
