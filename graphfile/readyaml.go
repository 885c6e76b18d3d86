package graphfile

import (
	"errors"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

const (
	// maxEntries bounds the entries outside of brackets: the library's time grows
	// with their square.
	maxEntries = 20_000
	// maxAliased bounds the text that aliases repeat.
	maxAliased = 1 << 20
)

// yamlReader makes values of the library's syntax tree.
type yamlReader struct {
	problems *problems
	anchors  map[string]*value
	aliased  int
	full     bool // maxAliased is reached and reported
}

// readYAML reads the whole of src; nil after a problem that leaves nothing to say.
func readYAML(p *problems, src *source) *value {
	if !src.noControls(p) {
		return nil
	}
	// The library forgets a tag at the very end.
	tokens := lexer.Tokenize(src.text + "\n")
	if !checkTokens(p, tokens) {
		return nil
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		syntaxProblem(p, err)
		return nil
	}
	var docs []*ast.DocumentNode
	for _, d := range file.Docs {
		if d.Body != nil {
			docs = append(docs, d)
		}
	}
	switch len(docs) {
	case 0:
		return &value{pos: Pos{1, 1}}
	case 1:
		r := &yamlReader{problems: p, anchors: make(map[string]*value)}
		return r.value(docs[0].Body, 0)
	default:
		p.add(posOf(docs[1].Body.GetToken()), "", "a second document: a file is one graph")
		return nil
	}
}

func syntaxProblem(p *problems, err error) {
	var located yaml.Error
	if !errors.As(err, &located) {
		p.add(Pos{}, "", "no YAML: %v", err)
		return
	}
	hint := ""
	tk := located.GetToken()
	if tk != nil && strings.HasSuffix(tk.Value, "$") ||
		tk != nil && tk.Prev != nil && tk.Type == token.MappingStartType && strings.HasSuffix(tk.Prev.Value, "$") {
		hint = `; inside { } and [ ] a text with ${ must be in quotes`
	}
	if strings.Contains(located.GetMessage(), "'\t'") {
		hint = "; indent with blanks: YAML takes no tabs there"
	}
	p.add(posOf(tk), "", "no YAML: %s%s", located.GetMessage(), hint)
}

func posOf(tk *token.Token) Pos {
	if tk == nil || tk.Position == nil {
		return Pos{}
	}
	return Pos{Line: tk.Position.Line, Column: max(1, tk.Position.Column)}
}

// checkTokens refuses what would take the parser long or deep, and what this
// package leaves out of YAML.
func checkTokens(p *problems, tokens token.Tokens) bool {
	var columns []int // of the maps and lists that are open outside of brackets
	brackets, entries := 0, 0
	before := len(p.list)
	for i, tk := range tokens {
		pos := posOf(tk)
		column := 0
		switch tk.Type {
		case token.MappingStartType, token.SequenceStartType:
			brackets++
		case token.MappingEndType, token.SequenceEndType:
			brackets = max(0, brackets-1)
		case token.SequenceEntryType:
			column = pos.Column
		case token.MappingValueType:
			column = pos.Column
			if i > 0 {
				column = posOf(tokens[i-1]).Column
			}
		default:
			checkToken(p, tk)
		}
		if column > 0 && brackets == 0 {
			entries++
			for len(columns) > 0 && columns[len(columns)-1] >= column {
				columns = columns[:len(columns)-1]
			}
			columns = append(columns, column)
		}
		if len(columns)+brackets > MaxDepth {
			p.add(pos, "", "nested too deep: at most %d levels are allowed", MaxDepth)
			return false
		}
		if entries > maxEntries {
			p.add(pos, "", "more than %d entries outside of { } and [ ]: write nodes as {type: ...}, or use JSON", maxEntries)
			return false
		}
	}
	return len(p.list) == before
}

func checkToken(p *problems, tk *token.Token) {
	switch tk.Type {
	case token.MappingKeyType:
		p.add(posOf(tk), "", `keys written with "? " are not read here: write "key: value"`)
	case token.DirectiveType:
		p.add(posOf(tk), "", "directives are not read here: remove the line with %%")
	case token.TagType:
		p.add(posOf(tk), "", "tags are not read here: remove %s, and put a text in quotes", tk.Value)
	case token.StringType:
		if strings.Contains(strings.TrimSpace(tk.Origin), "\t") && !strings.Contains(tk.Value, "\t") {
			p.add(posOf(tk), "", "a tab in a text without quotes: put it in double quotes, as \\t")
		}
	default:
	}
}

func (r *yamlReader) fail(pos Pos, format string, args ...any) *value {
	r.problems.add(pos, "", format, args...)
	return nil
}

// value converts one node; nil after a problem.
func (r *yamlReader) value(node ast.Node, depth int) *value {
	if node == nil {
		return &value{}
	}
	pos := posOf(node.GetToken())
	if depth > MaxDepth {
		return r.fail(pos, "nested too deep: at most %d levels are allowed", MaxDepth)
	}
	switch n := node.(type) {
	case *ast.MappingNode:
		return r.mapping(pos, n.Values, depth)
	case *ast.MappingValueNode:
		return r.mapping(pos, []*ast.MappingValueNode{n}, depth)
	case *ast.SequenceNode:
		v := &value{kind: list, pos: pos}
		for _, item := range n.Values {
			if val := r.value(item, depth+1); val != nil {
				v.items = append(v.items, val)
			}
		}
		v.measure()
		return v
	case *ast.AnchorNode:
		v := r.value(n.Value, depth)
		if v != nil && n.Name != nil {
			r.anchors[n.Name.GetToken().Value] = v
		}
		return v
	case *ast.AliasNode:
		return r.alias(n, pos, depth)
	case *ast.LiteralNode:
		return r.text(pos, n.Value.Value)
	case *ast.StringNode:
		if n.GetToken().Type == token.StringType {
			return r.scalar(pos, n.Value)
		}
		return r.text(pos, n.Value)
	case *ast.NullNode:
		return &value{pos: pos, size: 4}
	case *ast.BoolNode:
		return &value{kind: boolean, text: strings.ToLower(n.GetToken().Value), pos: pos, size: 5}
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return r.scalar(pos, node.GetToken().Value)
	default:
		return r.fail(pos, "%s is not read here", node.Type())
	}
}

func (r *yamlReader) text(pos Pos, s string) *value {
	return &value{kind: text, text: s, pos: pos, size: len(s) + 1}
}

func (r *yamlReader) alias(n *ast.AliasNode, pos Pos, depth int) *value {
	name := ""
	if n.Value != nil {
		name = n.Value.GetToken().Value
	}
	v := r.anchors[name]
	switch {
	case v == nil:
		return r.fail(pos, "*%s: there is no complete &%s before it", name, name)
	case depth+v.depth > MaxDepth:
		return r.fail(pos, "*%s: nested too deep: at most %d levels are allowed", name, MaxDepth)
	case r.aliased+v.size > maxAliased:
		if !r.full {
			r.fail(pos, "*%s: aliases repeat more than %d bytes", name, maxAliased)
		}
		r.full = true
		return nil
	}
	r.aliased += v.size
	return v
}

// mapping converts a map. What its merge keys bring comes last and replaces nothing.
func (r *yamlReader) mapping(pos Pos, entries []*ast.MappingValueNode, depth int) *value {
	v := &value{kind: object, pos: pos}
	known := make(map[string]Pos)
	var merged []*value
	for i, entry := range entries {
		key := entry.Key.GetToken()
		at := posOf(key)
		if i == 0 && key.Type != token.MappingStartType && v.pos.Line == at.Line && v.pos.Column > at.Column {
			v.pos = at // the library gives the place of the colon
		}
		val := r.value(entry.Value, depth+1)
		if val == nil {
			continue
		}
		if entry.Key.IsMergeKey() {
			merged = append(merged, r.merge(at, val)...)
			continue
		}
		name, ok := r.key(entry.Key)
		if ok {
			v.addMember(r.problems, known, member{name, at, val})
		}
	}
	for _, from := range merged {
		for _, m := range from.members {
			if _, has := known[m.key]; !has {
				known[m.key] = m.pos
				v.members = append(v.members, m)
			}
		}
	}
	v.measure()
	return v
}

// merge returns the maps that stand behind a merge key.
func (r *yamlReader) merge(pos Pos, val *value) []*value {
	maps := []*value{val}
	if val.kind == list {
		maps = val.items
	}
	for _, m := range maps {
		if m.kind != object {
			r.fail(pos, "<< needs a map, or a list of maps")
			return nil
		}
	}
	return maps
}

// key returns the text of a key.
func (r *yamlReader) key(key ast.MapKeyNode) (string, bool) {
	switch n := key.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NullNode, *ast.InfinityNode, *ast.NanNode:
		return key.GetToken().Value, true
	default:
		r.fail(posOf(key.GetToken()), "a key must be a text")
		return "", false
	}
}
