package graphfile

import (
	"fmt"
	"strings"

	"github.com/weirworks/weir/port"
)

// piece is a part of a text: literal, or the name of a parameter.
type piece struct {
	text string
	ref  bool
}

// pieces takes apart a text with references. wrong tells of the first ${ that is
// neither a reference nor escaped; it is empty if there is none.
func pieces(s string) (parts []piece, wrong string) {
	var literal strings.Builder
	for {
		brace := strings.Index(s, "${") + 1
		if brace == 0 {
			break
		}
		head := strings.TrimRight(s[:brace], "$")
		dollars := brace - len(head)
		literal.WriteString(head + strings.Repeat("$", dollars/2))
		s = s[brace+1:]
		if dollars%2 == 0 {
			literal.WriteByte('{')
			continue
		}
		name, rest, closed := strings.Cut(s, "}")
		if !closed || port.CheckName(name) != nil {
			return nil, fmt.Sprintf("%.40q names no parameter: write ${name}, or $${ for a plain ${", "${"+name+"}")
		}
		parts = append(parts, piece{literal.String(), false}, piece{name, true})
		literal.Reset()
		s = rest
	}
	literal.WriteString(s)
	return append(parts, piece{literal.String(), false}), ""
}

// escape makes a text in which nothing is a reference.
func escape(s string) string {
	var b strings.Builder
	for {
		brace := strings.Index(s, "${") + 1
		if brace == 0 {
			return b.String() + s
		}
		head := strings.TrimRight(s[:brace], "$")
		b.WriteString(head + strings.Repeat("$", 2*(brace-len(head))) + "{")
		s = s[brace+1:]
	}
}

// fill replaces the references in a text.
func fill(s string, values map[string]*value) *value {
	parts, wrong := pieces(s)
	if wrong != "" {
		return textValue(s) // checked before
	}
	if len(parts) == 3 && parts[0].text == "" && parts[2].text == "" {
		if v := values[parts[1].text]; v != nil {
			return v
		}
	}
	var b strings.Builder
	for _, part := range parts {
		switch v := values[part.text]; {
		case !part.ref || v == nil:
			b.WriteString(part.text)
		case v.kind == text:
			b.WriteString(v.text)
		default:
			b.Write(v.raw())
		}
	}
	return textValue(b.String())
}
