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
