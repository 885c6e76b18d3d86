package trigger

import (
	"encoding/json"

	"github.com/weirworks/weir/job"
)

// Plan is a plan that can be stored as JSON.
type Plan job.Plan

// storedNode is a node with what a node's own JSON leaves out.
type storedNode struct {
	job.Node
	Labels     map[string]string `json:"Labels,omitempty"`
	InstanceOf string            `json:"InstanceOf,omitempty"`
}

// MarshalJSON writes the jobs of the plan.
func (p *Plan) MarshalJSON() ([]byte, error) {
	nodes := make([]storedNode, len(p.Nodes))
	for i, n := range p.Nodes {
		nodes[i] = storedNode{Node: n, Labels: n.Labels, InstanceOf: n.InstanceOf}
	}
	return json.Marshal(nodes)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (p *Plan) UnmarshalJSON(raw []byte) error {
	var nodes []storedNode
	if err := json.Unmarshal(raw, &nodes); err != nil {
		return err
	}
	p.Nodes = make([]job.Node, len(nodes))
	for i, n := range nodes {
		p.Nodes[i] = n.Node
		p.Nodes[i].Labels, p.Nodes[i].InstanceOf = n.Labels, n.InstanceOf
		if string(n.Args) == "null" { // as none are written
			p.Nodes[i].Args = nil
		}
	}
	return nil
}
