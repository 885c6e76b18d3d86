package graphfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/weirworks/weir/port"
)

// jsonReader makes values of JSON text.
type jsonReader struct {
	problems *problems
	src      *source
	base     int // where the JSON begins in src
	text     string
	dec      *json.Decoder
}

// readJSON reads the whole of src; nil after a problem that leaves nothing to say.
func readJSON(p *problems, src *source) *value {
	if err := syntax([]byte(src.text)); err != nil {
		p.add(src.pos(err.offset), "", "%s", err.text)
		return nil
	}
	return readJSONAt(p, src, 0, src.text)
}

type syntaxError struct {
	offset int
	text   string
}

// syntax returns the first thing that makes data no JSON.
func syntax(data []byte) *syntaxError {
	if json.Valid(data) {
		return nil
	}
	var discard json.RawMessage
	var found *json.SyntaxError
	err := json.Unmarshal(data, &discard)
	if !errors.As(err, &found) {
		return &syntaxError{0, fmt.Sprintf("no JSON: %v", err)}
	}
	offset := int(found.Offset)
	if !strings.Contains(err.Error(), "unexpected end") {
		offset--
	}
	return &syntaxError{offset, "no JSON: " + err.Error()}
}

// readJSONAt makes a value of valid JSON that begins at an offset of src.
func readJSONAt(p *problems, src *source, base int, raw string) *value {
	r := &jsonReader{problems: p, src: src, base: base, text: raw, dec: json.NewDecoder(strings.NewReader(raw))}
	r.dec.UseNumber()
	return r.value(0)
}

// parseRaw makes a value of JSON that comes from no file.
func parseRaw(raw json.RawMessage) (*value, error) {
	if err := port.Check(raw); err != nil {
		return nil, err
	}
	p := newProblems("")
	v := readJSONAt(p, newSource(string(raw)), 0, string(raw))
	if len(p.list) > 0 {
		return nil, errors.New(p.list[0].Text) // its place would be one in raw
	}
	clearPos(v)
	return v, nil
}

// clearPos forgets where a value was: places inside of a raw value mislead.
func clearPos(v *value) {
	v.pos = Pos{}
	for _, item := range v.items {
		clearPos(item)
	}
	for i := range v.members {
		v.members[i].pos = Pos{}
		clearPos(v.members[i].val)
	}
}

func (r *jsonReader) fail(pos Pos, format string, args ...any) *value {
	r.problems.add(pos, "", format, args...)
	return nil
}

// next skips to the next token and reads it.
func (r *jsonReader) next() (json.Token, Pos, string) {
	start := int(r.dec.InputOffset())
	start += len(r.text[start:]) - len(strings.TrimLeft(r.text[start:], " \t\r\n,:"))
	token, err := r.dec.Token()
	if err != nil {
		return nil, r.src.pos(r.base + start), ""
	}
	return token, r.src.pos(r.base + start), r.text[start:r.dec.InputOffset()]
}

// value reads a value that is syntactically valid.
func (r *jsonReader) value(depth int) *value {
	token, pos, raw := r.next()
	v := &value{pos: pos}
	switch token := token.(type) {
	case json.Delim:
		if depth >= MaxDepth {
			return r.fail(pos, "nested too deep: at most %d levels are allowed", MaxDepth)
		}
		return r.inside(v, token, depth+1)
	case json.Number:
		v.kind, v.text = number, token.String()
	case string:
		v.kind, v.text = text, token
		r.checkText(pos, raw)
	case bool:
		v.kind, v.text = boolean, raw
	default:
		v.text = "null"
	}
	v.size = len(v.text) + 1
	return v
}

func (r *jsonReader) checkText(pos Pos, raw string) {
	if !strings.Contains(raw, `\u`) {
		return
	}
	if err := port.Check([]byte(raw)); err != nil {
		r.fail(pos, "%v", err)
	}
}

// inside reads a list or an object whose first delimiter has been read.
func (r *jsonReader) inside(v *value, open json.Delim, depth int) *value {
	v.kind = list
	known := make(map[string]Pos)
	for r.dec.More() {
		if open == '[' {
			item := r.value(depth)
			if item == nil {
				return nil
			}
			v.items = append(v.items, item)
			continue
		}
		key, pos, raw := r.next()
		r.checkText(pos, raw)
		val := r.value(depth)
		if val == nil {
			return nil
		}
		v.addMember(r.problems, known, member{fmt.Sprint(key), pos, val})
	}
	if open == '{' {
		v.kind = object
	}
	r.next()
	v.measure()
	return v
}

// addMember adds a member whose key is new, and reports it otherwise.
func (v *value) addMember(p *problems, known map[string]Pos, m member) {
	if first, twice := known[m.key]; twice {
		p.add(m.pos, "", "duplicate key %q: it is on line %d already; rename or remove one", m.key, first.Line)
		return
	}
	known[m.key] = m.pos
	v.members = append(v.members, m)
}
