package port

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
)

// VersionedMessage is implemented by Go types of messages whose encoding is no longer what it was. MessageVersion is that of what
// the type encodes to: 1 is that of a type without the method, and each change that older programs cannot read counts on by one.
// Messages carry it in their context, as [ContextVersion].
type VersionedMessage interface {
	MessageVersion() int
}

// MessageUpgrader is implemented by such types that read messages of older versions. UpgradeMessage turns one of version from into
// one of the next; it is called on the zero value, for each version in between, and only computes. Without it they are read as
// they are.
type MessageUpgrader interface {
	UpgradeMessage(from int, old json.RawMessage) (json.RawMessage, error)
}

// ErrNewer is wrapped by the errors about messages that a newer version of their type has written.
var ErrNewer = errors.New("the message is of a newer version")

// VersionedReader is a Reader that opens messages of other versions, for handles that are bound to it.
type VersionedReader interface {
	// Reads says how the handle reads messages.
	Reads(f Format)
}

// VersionedWriter is a Writer that can say which version messages are of.
type VersionedWriter interface {
	// At returns what writes messages of a version.
	At(version int) Writer
}

// Format is how a program reads the messages of a Go type.
type Format struct {
	// Version that it writes; 0: any, as it takes them as they are.
	Version int
	upgrade func(from int, old json.RawMessage) (json.RawMessage, error)
}

// FormatOf returns that of the type that v points to.
func FormatOf(v any) Format {
	t := reflect.TypeOf(v)
	if t == nil || t.Kind() != reflect.Pointer || t.Elem() == rawType || t.Elem().Kind() == reflect.Interface {
		return Format{}
	}
	f := Format{Version: 1}
	if _, ok := v.(VersionedMessage); !ok {
		return f
	}
	zero := reflect.New(t.Elem()).Interface() // v may be nil
	if m, ok := zero.(VersionedMessage); ok {
		f.Version = max(m.MessageVersion(), 1)
	}
	if up, ok := zero.(MessageUpgrader); ok {
		f.upgrade = up.UpgradeMessage
	}
	return f
}

var rawType = reflect.TypeFor[json.RawMessage]()

// VersionOf returns the version that a value encodes to.
func VersionOf(v any) int {
	if m, ok := v.(VersionedMessage); ok {
		if p := reflect.ValueOf(v); p.Kind() != reflect.Pointer || !p.IsNil() {
			return max(m.MessageVersion(), 1)
		}
	}
	return 1
}

// Open returns the data of a message, given with its context, as the newest version of its type has it. The error wraps ErrNewer
// if that is not new enough.
func (f Format) Open(data, context json.RawMessage) (json.RawMessage, error) {
	version := ContextVersionOf(context)
	switch {
	case f.Version == 0 || version == f.Version:
		return data, nil
	case version > f.Version:
		return nil, fmt.Errorf("%w: %d, this program reads %d: %s", ErrNewer, version, f.Version, excerpt(data))
	}
	for from := version; f.upgrade != nil && from < f.Version; from++ {
		var err error
		if data, err = f.upgrade(from, data); err != nil {
			return nil, fmt.Errorf("upgrading a message of version %d: %w", from, err)
		}
	}
	return data, nil
}

// DecodeStored is [Decode] for a message as it is stored, which may be of an older version.
func DecodeStored(stored json.RawMessage, v any) error {
	data, context := Split(stored)
	data, err := FormatOf(v).Open(data, context)
	if err != nil {
		return err
	}
	return Decode(data, v)
}

// versionKey begins what a context says of the version.
const versionKey = `"` + ContextVersion + `":`

// ContextVersionOf returns which version a context, as [Split] returns it, says that its message is of.
func ContextVersionOf(context json.RawMessage) int {
	_, rest, ok := bytes.Cut(context, []byte(versionKey))
	if !ok {
		return 1
	}
	end := 0
	for end < len(rest) && rest[end] >= '0' && rest[end] <= '9' {
		end++
	}
	n, err := strconv.Atoi(string(rest[:end]))
	if err != nil {
		return 1
	}
	return n
}

// SealVersion returns a stored message as one of a version.
func SealVersion(stored json.RawMessage, version int) json.RawMessage {
	data, context := Split(stored)
	if before := ContextVersionOf(context); before == version {
		return stored
	} else if before > 1 {
		context = bytes.Replace(context, []byte(versionKey+strconv.Itoa(before)), []byte(versionKey+strconv.Itoa(version)), 1)
		return seal(data, string(context))
	}
	key := "{" + versionKey + strconv.Itoa(version)
	if len(context) <= len("{}") {
		return seal(data, key, "}")
	}
	return seal(data, key, ",", string(context[1:]))
}
