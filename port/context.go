package port

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
)

// Context is what travels with a message beside its data: who wrote it, the channel it
// came by, and whatever keys its writer added. Values are any JSON.
type Context map[string]any

// Keys of a Context that Weir sets.
const (
	ContextBy      = "by"              // who wrote it, like "job:<id>"
	ContextChannel = "channel"         // the channel that it was published to
	ContextVersion = "message_version" // the version of its Go type, see VersionedMessage; none for 1
	// The trace that it belongs to, as the headers of W3C Trace Context, see package telemetry/tracing.
	ContextTrace      = "traceparent"
	ContextTraceState = "tracestate"
)

// With returns a context with the keys of both; of a key in both, more's value counts.
func (c Context) With(more Context) Context {
	out := maps.Clone(c)
	if out == nil {
		out = Context{}
	}
	maps.Copy(out, more)
	return out
}

// A stored message that has a context is a byte 1, the context as a JSON object, a
// newline and the data. No JSON text begins with a byte 1.
const sealed = 1

// Seal returns a message as it is stored: data with a context. Without context that is
// the data itself.
func Seal(data json.RawMessage, c Context) (json.RawMessage, error) {
	if len(c) == 0 {
		return data, nil
	}
	if by, ok := c[ContextBy].(string); ok && len(c) == 1 && plain(by) { // as most have
		return SealBy(data, "", by)
	}
	head, err := Encode(map[string]any(c))
	if err != nil {
		return nil, fmt.Errorf("context of a message: %w", err)
	}
	return seal(data, string(head)), nil
}

// SealBy is Seal with a context that says no more than who wrote the message, which is kind and name.
func SealBy(data json.RawMessage, kind, name string) (json.RawMessage, error) {
	if !plain(kind) || !plain(name) {
		return Seal(data, Context{ContextBy: kind + name})
	}
	return seal(data, `{"`+ContextBy+`":"`, kind, name, `"}`), nil
}

// SealTraced is SealBy for a message that belongs to a trace, too: parent and state are the values of ContextTrace and
// ContextTraceState, of which state may be empty.
func SealTraced(data json.RawMessage, kind, name, parent, state string) (json.RawMessage, error) {
	if state != "" || !plain(kind) || !plain(name) || !plain(parent) {
		c := Context{ContextBy: kind + name, ContextTrace: parent}
		if state != "" {
			c[ContextTraceState] = state
		}
		return Seal(data, c)
	}
	return seal(data, `{"`+ContextBy+`":"`, kind, name, `","`+ContextTrace+`":"`, parent, `"}`), nil
}

// TraceOf returns what a context, as Split returns it, says of a trace: the values of ContextTrace and ContextTraceState.
func TraceOf(context json.RawMessage) (parent, state string) {
	const key = `"` + ContextTrace + `":"`
	_, rest, ok := bytes.Cut(context, []byte(key)) // a quote within a string has a backslash before it
	if !ok {
		return "", ""
	}
	value, rest, ok := bytes.Cut(rest, []byte{'"'})
	if !ok {
		return "", ""
	}
	if bytes.HasPrefix(rest, []byte(`,"`+ContextTraceState+`":`)) { // keys are sorted
		var c struct {
			State string `json:"tracestate"`
		}
		_ = json.Unmarshal(context, &c) // without it the trace goes on
		state = c.State
	}
	return string(value), state
}

// seal puts a context, given in parts, before data.
func seal(data json.RawMessage, context ...string) json.RawMessage {
	size := len(data) + 2
	for _, part := range context {
		size += len(part)
	}
	out := append(make([]byte, 0, size), sealed)
	for _, part := range context {
		out = append(out, part...)
	}
	return append(append(out, '\n'), data...)
}

// Split returns the data of a stored message, and its context as JSON, nil for none.
func Split(stored json.RawMessage) (data, context json.RawMessage) {
	if len(stored) == 0 || stored[0] != sealed {
		return stored, nil
	}
	head, data, ok := bytes.Cut(stored[1:], []byte{'\n'})
	if !ok {
		return stored[1:], nil
	}
	return data, head
}

// HearsStatuses tells whether the statuses of jobs come to those who subscribe to a channel: to /weir, what is below it, and /.
func HearsStatuses(channel string) bool {
	return channel == "/" || channel == "/weir" || strings.HasPrefix(channel, "/weir/")
}

// CheckChannel returns an error that wraps [ErrName] unless channel is "/" or made of
// names, each with a slash before it: letters, digits and _ - . :
func CheckChannel(channel string) error {
	if channel == "/" {
		return nil
	}
	if len(channel) > 4*MaxName || !strings.HasPrefix(channel, "/") {
		return fmt.Errorf("%w: channel %q: begin it with a slash, like /orders/new", ErrName, shorten(channel))
	}
	for part := range strings.SplitSeq(channel[1:], "/") {
		if part == "" || strings.ContainsFunc(part, func(r rune) bool { return !isNameRune(r) && !strings.ContainsRune("-.:", r) }) {
			return fmt.Errorf("%w: channel %q: between slashes use letters, digits and any of _-.: only", ErrName, shorten(channel))
		}
	}
	return nil
}
