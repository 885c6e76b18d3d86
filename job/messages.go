package job

import (
	"encoding/json"

	"github.com/weirworks/weir/port"
)

// Message is a message with its context.
type Message struct {
	Data    json.RawMessage `json:"data"`
	Context port.Context    `json:"context,omitempty"`
}

// MessageOf reads a message as it is stored.
func MessageOf(stored json.RawMessage) (m Message, err error) {
	data, keys := port.Split(stored)
	if m.Data = data; keys != nil {
		err = port.Decode(keys, &m.Context)
	}
	return m, err
}

// MessageTypes tells which Go types the messages of ports have, by type of job and port, as far as known: what Patch compares.
func (p *Plan) MessageTypes() map[string]string {
	types := map[string]string{}
	for i := range p.Nodes {
		for k := range p.Nodes[i].Ports {
			if q := &p.Nodes[i].Ports[k]; q.Type != "" {
				types[MessageKey(p.Nodes[i].Type, q)] = q.Type
			}
		}
	}
	return types
}

// MessageKey names a port of a type of job, see Plan.MessageTypes.
func MessageKey(typ string, p *Port) string { return typ + " " + port.TypeKey(p.Dir, p.Name) }
