package port

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"sync"
	"unicode/utf8"
)

// maxPooled is the capacity above which an encoder's buffer is not kept.
const maxPooled = 1 << 20

// encoder is a JSON encoder and its output, reused because the hot path is many
// messages in a row.
type encoder struct {
	buf  bytes.Buffer
	json *json.Encoder
}

var encoders = sync.Pool{New: func() any {
	e := new(encoder)
	e.json = json.NewEncoder(&e.buf)
	e.json.SetEscapeHTML(false)
	return e
}}

func (e *encoder) release() {
	if e.buf.Cap() <= maxPooled {
		e.buf.Reset()
		encoders.Put(e)
	}
}

// Encode returns v as a message: compact JSON. A json.RawMessage is checked and
// compacted and otherwise kept, so numbers of any size survive; an empty one is
// no JSON and is refused. Values that JSON
// cannot carry unharmed are refused with an error that wraps [ErrEncoding]: NaN
// and infinities, functions and channels, and text that is not valid UTF-8. The
// result shares no memory with v. Encode is safe for concurrent use.
func Encode(v any) (json.RawMessage, error) {
	if raw, ok := v.(json.RawMessage); ok {
		return compact(raw)
	}
	return encode(v, "")
}

// Text is a value as JSON, for people.
func Text(v any) string {
	raw, err := Encode(v)
	if err != nil { // a message in it is none
		return "(" + err.Error() + ")"
	}
	return string(raw)
}

// encode is Encode with the name of v's type, empty for the one it has.
func encode(v any, name string) (json.RawMessage, error) {
	if s, ok := v.(string); ok && plain(s) {
		return append(append(append(make([]byte, 0, len(s)+2), '"'), s...), '"'), nil
	}
	e := encoders.Get().(*encoder)
	defer e.release()
	if err := e.json.Encode(v); err != nil {
		return nil, encodeError(typeName(v, name), err)
	}
	out := bytes.Clone(bytes.TrimSuffix(e.buf.Bytes(), []byte{'\n'}))
	// A custom MarshalJSON can return anything that looks like JSON.
	if err := checkText(out); err != nil {
		return nil, fmt.Errorf("encoding %s: %w", typeName(v, name), err)
	}
	if mayHideInvalid(out) {
		if path, text, found := invalidText(reflect.ValueOf(v)); found {
			return nil, fmt.Errorf("encoding %s: %w: %sthe text %q is not valid UTF-8, send bytes as []byte",
				typeName(v, name), ErrEncoding, at(path), shorten(text))
		}
	}
	return out, nil
}

// plain tells whether a text is the same in JSON, between quotes: most are, and need no more looks.
func plain[T string | []byte](s T) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// Canonical is Encode for comparing: keys of objects are sorted, and numbers are as they are written.
func Canonical(v any) (json.RawMessage, error) {
	raw, err := Encode(v)
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var plain any
	if err := dec.Decode(&plain); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrEncoding, err)
	}
	return Encode(plain)
}

func compact(raw json.RawMessage) (json.RawMessage, error) {
	if err := Check(raw); err != nil {
		return nil, err
	}
	var buf bytes.Buffer
	buf.Grow(len(raw))
	if err := json.Compact(&buf, raw); err != nil {
		return nil, fmt.Errorf("%w: %w in %s", ErrEncoding, err, excerpt(raw))
	}
	return buf.Bytes(), nil
}

func typeName(v any, name string) string {
	if name == "" {
		return fmt.Sprintf("%T", v)
	}
	return name
}

func encodeError(name string, err error) error {
	var (
		value *json.UnsupportedValueError
		kind  *json.UnsupportedTypeError
		hint  string
	)
	switch {
	case errors.As(err, &value):
		hint = "; JSON has finite numbers and no cycles, send null instead"
	case errors.As(err, &kind):
		hint = `; JSON has no such thing, leave the field out with json:"-"`
	}
	return fmt.Errorf("encoding %s: %w: %w%s", name, ErrEncoding, err, hint)
}

// mayHideInvalid reports whether out, made by encoding/json, holds a replacement
// character: the library turns each invalid byte of a Go string into one.
func mayHideInvalid(out []byte) bool {
	return bytes.Contains(out, []byte(`\ufffd`)) || bytes.Contains(out, []byte("\xef\xbf\xbd"))
}

// Check returns nil when raw is a message: one valid JSON value in valid UTF-8,
// whose \u escapes stand for characters (no surrogate without its other half).
// Otherwise the error wraps [ErrEncoding] and says what is wrong where.
func Check(raw []byte) error {
	if !json.Valid(raw) {
		var discard json.RawMessage
		err := json.Unmarshal(raw, &discard)
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return fmt.Errorf("%w: %w at byte %d of %s", ErrEncoding, err, syntax.Offset, excerpt(raw))
		}
		return fmt.Errorf("%w: invalid JSON in %s", ErrEncoding, excerpt(raw))
	}
	return checkText(raw)
}

// checkText checks what encoding/json does not: UTF-8 and surrogates.
func checkText(raw []byte) error {
	if !utf8.Valid(raw) {
		i := invalidAt(raw)
		return fmt.Errorf("%w: byte %d, %#x, is not valid UTF-8 near %s", ErrEncoding, i, raw[i], excerpt(raw[max(0, i-20):]))
	}
	if i := loneSurrogate(raw); i >= 0 {
		return fmt.Errorf("%w: byte %d, the escape %s, is half a character: a surrogate without its other half",
			ErrEncoding, i, raw[i:i+6])
	}
	return nil
}

func invalidAt(raw []byte) int {
	for i := 0; i < len(raw); {
		r, size := utf8.DecodeRune(raw[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return -1
}

// loneSurrogate returns where the first \u escape of half a character is, or -1.
// What is not JSON is skipped.
func loneSurrogate(raw []byte) int {
	if !bytes.Contains(raw, []byte(`\u`)) {
		return -1
	}
	for i := 0; ; {
		next := bytes.IndexByte(raw[i:], '\\')
		if next < 0 {
			return -1
		}
		i += next
		switch r := escaped(raw[i:]); {
		case r < 0xd800 || r > 0xdfff:
			i = min(i+2, len(raw))
		case r > 0xdbff:
			return i
		default:
			if low := escaped(raw[i+6:]); low < 0xdc00 || low > 0xdfff {
				return i
			}
			i += 12
		}
	}
}

// escaped returns the number of the escape like \u00e4 that b starts with, or -1.
func escaped(b []byte) int {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return -1
	}
	n, err := strconv.ParseUint(string(b[2:6]), 16, 16)
	if err != nil {
		return -1
	}
	return int(n)
}

// Decode opens a message into the value v points to. Wherever v leaves the type
// open (any), numbers come as json.Number, so none is rounded. The error wraps
// [ErrEncoding], names the type wanted and shows how the message begins; what v
// points to may be partly set then. Decode is safe for concurrent use.
func Decode(raw []byte, v any) error {
	t := reflect.TypeOf(v)
	if t == nil || t.Kind() != reflect.Pointer || reflect.ValueOf(v).IsNil() {
		return fmt.Errorf("decoding into %T: pass a pointer that is not nil", v)
	}
	return decode(raw, v, t.Elem().String())
}

// decode is Decode with the name of the type wanted; v is a pointer.
func decode(raw []byte, v any, want string) error {
	if s, ok := v.(*string); ok && len(raw) > 1 && raw[0] == '"' && raw[len(raw)-1] == '"' && plain(raw[1:len(raw)-1]) {
		*s = string(raw[1 : len(raw)-1])
		return nil
	}
	err := checkText(raw)
	if err == nil {
		if err = unmarshal(raw, v); err != nil {
			err = fmt.Errorf("%w: %w", ErrEncoding, err)
		}
	}
	if err != nil {
		return fmt.Errorf("decoding message %s as %s: %w", excerpt(raw), want, err)
	}
	return nil
}

func unmarshal(raw []byte, v any) error {
	if !holdsAny(reflect.TypeOf(v)) {
		return json.Unmarshal(raw, v)
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(v); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return errors.New("unexpected end of JSON input")
		}
		return err
	}
	if rest := bytes.TrimLeft(raw[d.InputOffset():], " \t\r\n"); len(rest) > 0 {
		return fmt.Errorf("a message is one JSON value, more follows it: %s", excerpt(rest))
	}
	return nil
}
