package graphfile

import (
	"path"
	"strings"
)

// Parse reads a file. The extension of its name says how: .yaml and .yml are Weir's
// YAML, .fbp is the language of flowbased/fbp, and .json is Weir's JSON or, if the file
// has "processes" and no "weir", the JSON of NoFlo.
//
// The error tells everything that is wrong with the file, see [Problems]; only what
// cannot be read at all hides the rest.
func Parse(name string, data []byte) (*File, error) {
	return sound(ParseDraft(name, data))
}

// ParseDraft is [Parse], and returns a File also if something is wrong with it: what could be read of it. Its
// [File.Build] tells what else is wrong, beside all that the error says, so that whoever writes the file is told everything at
// once. There is no File if the text cannot be read at all.
func ParseDraft(name string, data []byte) (*File, error) {
	switch ext := strings.ToLower(path.Ext(name)); ext {
	case ".yaml", ".yml":
		return parse(name, data, readYAML, fromWeir)
	case ".fbp":
		return parseFBP(name, data)
	case ".json":
		return parse(name, data, readJSON, func(p *problems, v *value) *File {
			if v.get("weir") == nil && v.get("processes") != nil {
				return fromNoFlo(p, v)
			}
			return fromWeir(p, v)
		})
	default:
		p := newProblems(name)
		p.add(Pos{}, "", "unknown extension %q: use .yaml, .yml, .json or .fbp", ext)
		return nil, p.err()
	}
}

// ParseYAML reads Weir's YAML. The name is for messages.
func ParseYAML(name string, data []byte) (*File, error) {
	return sound(parse(name, data, readYAML, fromWeir))
}

// ParseJSON reads Weir's JSON. The name is for messages.
func ParseJSON(name string, data []byte) (*File, error) {
	return sound(parse(name, data, readJSON, fromWeir))
}

// ParseNoFlo reads the JSON of NoFlo. The name is for messages.
func ParseNoFlo(name string, data []byte) (*File, error) {
	return sound(parse(name, data, readJSON, fromNoFlo))
}

// ParseFBP reads the language of flowbased/fbp. The name is for messages.
func ParseFBP(name string, data []byte) (*File, error) { return sound(parseFBP(name, data)) }

func parseFBP(name string, data []byte) (*File, error) {
	p := newProblems(name)
	src, ok := newText(p, data)
	if !ok {
		return nil, p.err()
	}
	f := fromFBP(p, src)
	p.blind = len(p.list) > 0 // what a statement says that cannot be read may be an edge
	return finish(p, f)
}

// sound is a File with which nothing is wrong.
func sound(f *File, err error) (*File, error) {
	if err != nil {
		return nil, err
	}
	return f, nil
}

// parse reads a value from text and makes a File of it.
func parse(name string, data []byte, read func(*problems, *source) *value, convert func(*problems, *value) *File) (*File, error) {
	p := newProblems(name)
	src, ok := newText(p, data)
	if !ok {
		return nil, p.err()
	}
	v := read(p, src)
	switch {
	case v == nil:
		return nil, p.err()
	case v.kind == null:
		p.add(v.pos, "", "the file is empty")
		return nil, p.err()
	}
	return finish(p, convert(p, v))
}

// finish checks a File that has been read.
func finish(p *problems, f *File) (*File, error) {
	f.Source = p.file
	f.check(p)
	if p.left != nil && len(p.list) == 0 {
		p.list = append(p.list, p.left)
	}
	err := p.err()
	if err != nil {
		f.wrong = p
	}
	return f, err
}

// fromWeir makes a File of a value in Weir's format.
func fromWeir(p *problems, v *value) *File {
	validate(p, weirFormat, v)
	if name := v.get("name"); name.is(text) && wrongName(name.text) != "" {
		p.add(name.pos, "name", "%s", wrongName(name.text))
	}
	f := decoder{p}.file(v, str(v.get("name")), "")
	return &f
}
