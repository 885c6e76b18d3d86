package port

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Any is the name that stands for every port not declared otherwise. A [Spec]
// of that name gives its options to the ports created on demand.
const Any = "*"

// MaxName is the longest port name in bytes.
const MaxName = 128

var (
	// ErrName is wrapped by the errors about names that are not port names.
	ErrName = errors.New("invalid port name")

	// ErrEncoding is wrapped by the errors about values that cannot become a
	// message, bytes that are not a message, and messages that cannot become
	// the value asked for.
	ErrEncoding = errors.New("wrong encoding")

	// ErrUnbound is wrapped by the errors of handles used before they are bound
	// to a run.
	ErrUnbound = errors.New("the port handle is not bound to a run: use it inside Run, on the worker that Run was called on")
)

// Dir is the direction of a port, seen from the worker that owns it.
type Dir byte

const (
	// Input ports are read by the worker.
	Input Dir = 'i'
	// Output ports are written by the worker.
	Output Dir = 'o'
)

// String returns "in" or "out", and for other values a text that shows them.
func (d Dir) String() string {
	switch d {
	case Input:
		return "in"
	case Output:
		return "out"
	default:
		return fmt.Sprintf("Dir(%d)", byte(d))
	}
}

// MarshalText writes the direction as "in" or "out".
func (d Dir) MarshalText() ([]byte, error) {
	if d != Input && d != Output {
		return nil, fmt.Errorf("port direction %v: use port.Input or port.Output", d)
	}
	return []byte(d.String()), nil
}

// UnmarshalText reads what [Dir.MarshalText] writes.
func (d *Dir) UnmarshalText(text []byte) error {
	switch string(text) {
	case "in":
		*d = Input
	case "out":
		*d = Output
	default:
		return fmt.Errorf(`port direction %q: use "in" or "out"`, shorten(string(text)))
	}
	return nil
}

// Spec describes one port of a worker.
type Spec struct {
	// Name is the port's name, or [Any].
	Name string `json:"name,omitempty"`
	// Dir is the port's direction.
	Dir Dir `json:"dir,omitempty"`
	// Default is the message read while the port is empty; nil for none. That of an output port is for who reads that
	// port, such as a parent: input ports that it is connected to have their own.
	Default json.RawMessage `json:"default,omitempty"`
	// Limit is the number of messages at which the port is full; 0 for none.
	Limit int `json:"limit,omitempty"`
	// Required: in a graph the input port must be connected, or have a constant.
	Required bool `json:"required,omitempty"`
	// Type is the Go type of the messages, for people to read; may be empty.
	Type string `json:"type,omitempty"`
	// MessageVersion is the version that the type declares, see VersionedMessage; 0: none.
	MessageVersion int `json:"message_version,omitempty"`
	// Channels are the channels that an output port publishes to besides, or that an
	// input port subscribes to.
	Channels []string `json:"channels,omitempty"`
	// Keep: an output port that publishes to channels, and is wired to nobody, keeps its
	// messages as well, for who reads the port. Without it they are only published.
	Keep bool `json:"keep,omitempty"`
}

// Validate returns an error that names every wrong field, or nil.
func (s Spec) Validate() error {
	var errs []error
	if s.Name != Any {
		errs = append(errs, CheckName(s.Name))
	}
	if s.Dir != Input && s.Dir != Output {
		errs = append(errs, fmt.Errorf("direction %v: use port.Input or port.Output", s.Dir))
	}
	if s.Limit < 0 {
		errs = append(errs, fmt.Errorf("limit %d is negative: use 0 for no limit", s.Limit))
	}
	if s.Default != nil {
		if err := Check(s.Default); err != nil {
			errs = append(errs, fmt.Errorf("default: %w", err))
		}
	}
	if s.Required && s.Dir == Output {
		errs = append(errs, errors.New("only an input port can be required: remove it"))
	}
	if s.Keep && (s.Dir != Output || len(s.Channels) == 0) {
		errs = append(errs, errors.New("only an output port with a channel can keep what it publishes, others keep their messages anyway: remove it"))
	}
	for _, c := range s.Channels {
		errs = append(errs, CheckChannel(c))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("port %q: %w", shorten(s.Name), err)
	}
	return nil
}

// CheckName returns an error that wraps [ErrName] unless name is made of 1 to
// [MaxName] ASCII letters, digits and underscores. [Any] is not such a name.
func CheckName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf(`%w "": a name cannot be empty`, ErrName)
	case len(name) > MaxName:
		return fmt.Errorf("%w %q: it has %d bytes, %d are allowed", ErrName, shorten(name), len(name), MaxName)
	}
	for i, r := range name {
		if !isNameRune(r) {
			return fmt.Errorf("%w %q: %q at byte %d is not allowed, use letters, digits and _ only",
				ErrName, shorten(name), r, i)
		}
	}
	return nil
}

func isNameRune(r rune) bool {
	return r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
}

// Reader is the queue behind an input handle during one run. It is used by one
// goroutine at a time unless its implementation says otherwise.
type Reader interface {
	// Read takes the next message. When the port is empty it returns the port's
	// default, and without one ok is false.
	Read() (raw json.RawMessage, ok bool, err error)
	// Peek returns what Read would, and leaves it in place.
	Peek() (raw json.RawMessage, ok bool, err error)
	// Len is the number of messages that wait to be read; a default does not
	// count.
	Len() int
	// Done reports that no message waits and none can come: every source is
	// closed.
	Done() bool
}

// Writer is the queue behind an output handle during one run. It is used by one
// goroutine at a time unless its implementation says otherwise.
type Writer interface {
	// Write appends a message.
	Write(raw json.RawMessage) error
	// WriteKey appends a message that goes to the same one of several consumers
	// as all messages of that key.
	WriteKey(key string, raw json.RawMessage) error
	// Close says that no message follows.
	Close() error
}

// Binder gives the queues of one run to the handles of a worker, see
// [Layout.Bind].
type Binder interface {
	// BindIn returns the queue of the input port of that name.
	BindIn(name string) Reader
	// BindOut returns the queue of the output port of that name.
	BindOut(name string) Writer
}
