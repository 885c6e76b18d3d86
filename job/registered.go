package job

import (
	"encoding/json"

	"github.com/weirworks/weir/port"
)

// Registered stands in graphs for a worker of a type whose code is elsewhere: in another program, or in another language. It is what
// the type's registration says.
type Registered struct {
	info *TypeInfo
	args json.RawMessage
}

// NewRegistered returns one of a type with the given arguments, a JSON object or nil. Arguments that the type does not take
// give an error that wraps [port.ErrParams].
func NewRegistered(info *TypeInfo, args json.RawMessage) (*Registered, error) {
	if info.Params != nil {
		if err := port.CheckParams(info.Params, args); err != nil {
			return nil, err
		}
	}
	return &Registered{info, args}, nil
}

// With returns another one of the same type, with other arguments.
func (r *Registered) With(args json.RawMessage) (*Registered, error) {
	return NewRegistered(r.info, args)
}

// JobType implements TypeNamer.
func (r *Registered) JobType() string { return r.info.Type }

// Ports implements PortDeclarer.
func (r *Registered) Ports() []port.Spec { return r.info.Ports }

// SilentStatus implements StatusHider.
func (r *Registered) SilentStatus() bool { return r.info.Silent }
