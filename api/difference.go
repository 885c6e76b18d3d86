package api

import (
	"encoding/json"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/graphfile"
)

// Difference is what a patch of a graph would change. Jobs are named by their paths below the graph.
type Difference struct {
	Same         bool             `json:"same" doc:"the graph has this definition already"`
	Added        []NodeDifference `json:"added" doc:"jobs that are created"`
	Removed      []NodeDifference `json:"removed" doc:"jobs that are removed, with their state; those that hold messages or run refuse the patch"`
	Changed      []NodeDifference `json:"changed" doc:"jobs that stay, with messages and state, and get other properties"`
	EdgesAdded   []string         `json:"edges_added" doc:"such as pay/check.out -> bank.in; the graph itself has no name"`
	EdgesRemoved []string         `json:"edges_removed"`
}

// NodeDifference is what becomes of one job of a graph.
type NodeDifference struct {
	Path    string            `json:"path" doc:"empty for the graph itself"`
	Type    string            `json:"type"`
	Waiting int64             `json:"waiting,omitempty" doc:"messages that its ports hold"`
	Fields  []FieldDifference `json:"fields,omitempty"`
}

// FieldDifference is what becomes of one property of a job.
type FieldDifference struct {
	Field string          `json:"field" doc:"such as args, or limit of in orders"`
	From  json.RawMessage `json:"from"`
	To    json.RawMessage `json:"to"`
}

// DifferenceOf is a difference as the API shows it.
func DifferenceOf(d *client.Difference) Difference {
	nodes := func(all []client.NodeDifference) []NodeDifference {
		views := []NodeDifference{}
		for _, n := range all {
			v := NodeDifference{Path: n.Path, Type: n.Type, Waiting: n.Waiting}
			for _, f := range n.Fields {
				v.Fields = append(v.Fields, FieldDifference(f))
			}
			views = append(views, v)
		}
		return views
	}
	return Difference{d.Same, nodes(d.Added), nodes(d.Removed), nodes(d.Changed), some(d.EdgesAdded), some(d.EdgesRemoved)}
}

// paramsSchema is a JSON Schema of the values that the parameters of a graph take.
func paramsSchema(f *graphfile.File) (json.RawMessage, error) {
	properties, required := map[string]any{}, []string{}
	for _, p := range f.Params {
		one := map[string]any{}
		if kind := map[string]string{graphfile.TypeString: "string", graphfile.TypeInt: "integer", graphfile.TypeNumber: "number", graphfile.TypeBool: "boolean"}[p.Type]; kind != "" {
			one["type"] = kind // else it is anything
		}
		if p.Description != "" {
			one["description"] = p.Description
		}
		if p.Default != nil {
			one["default"] = p.Default
		} else {
			required = append(required, p.Name)
		}
		properties[p.Name] = one
	}
	schema := map[string]any{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "properties": properties, "additionalProperties": false,
	}
	if len(required) > 0 {
		schema["required"] = required
	}
	return json.Marshal(schema)
}
