package graphfile

import (
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The words of the language.
var (
	fbpIndex      = regexp.MustCompile(`^\[[0-9]+\]`)
	fbpComponent  = regexp.MustCompile(`^\(([A-Za-z/0-9_-]*)(?::([A-Za-z/=_,0-9]+))?\)`)
	fbpSetting    = regexp.MustCompile(`^([A-Z_]+)=`)
	fbpExport     = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_-]*)(\([^)]*\))?\.([A-Za-z_][A-Za-z0-9_.]*):([A-Za-z_][A-Za-z0-9_.]*)$`)
	fbpValue      = regexp.MustCompile(`^(\([^)\n]*\)|[^ \t,#\n\r\x{2028}\x{2029}])*`)
	fbpPort       = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.]*$`)
	fbpNode       = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)
	fbpType       = regexp.MustCompile(`^[A-Za-z/0-9_-]+$`)
	fbpMeta       = regexp.MustCompile(`^[A-Za-z/_0-9]*$`)
	fbpAnnotation = regexp.MustCompile(`^# +@([A-Za-z0-9_-]+) +([A-Za-z0-9_. -]+)$`)
	fbpRemark     = regexp.MustCompile(`^[A-Za-z0-9_.-]+( +[A-Za-z0-9_.-]+)*$`)
)

// fbpTerm is one word of a connection: a port, a node, or either.
type fbpTerm struct {
	name      string
	index     int  // -1 if there is none
	component bool // the word has parentheses, so it is a node
	typ, meta string
	pos       Pos
}

// fbpHop is what stands between two arrows.
type fbpHop struct {
	data  *value // an initial value, or nil
	terms []fbpTerm
	pos   Pos
}

// fbpLine is one statement that is not a chain.
type fbpLine struct {
	key, text string // of NAME=text, or of an annotation
	pos       Pos
}

// fbpScanner reads statements.
type fbpScanner struct {
	problems    *problems
	src         *source
	off         int
	settings    []fbpLine
	annotations []fbpLine
	chains      [][]fbpHop
	defaults    [][2]string // the default ports that hold for each chain
	ports       [2]string   // those that hold here
}

func (s *fbpScanner) rest() string { return s.src.text[s.off:] }
func (s *fbpScanner) pos() Pos     { return s.src.pos(s.off) }

func (s *fbpScanner) fail(pos Pos, format string, args ...any) bool {
	s.problems.add(pos, "", format, args...)
	return false
}

// isBreak reports whether r ends a line in this language.
func isBreak(r rune) bool { return r == '\n' || r == '\r' || r == '\u2028' || r == '\u2029' }

// blanks skips spaces in a line.
func (s *fbpScanner) blanks() {
	s.off = len(s.src.text) - len(strings.TrimLeft(s.rest(), " \t"))
}

// line returns the rest of the line.
func (s *fbpScanner) line() string {
	if end := strings.IndexFunc(s.rest(), isBreak); end >= 0 {
		return s.rest()[:end]
	}
	return s.rest()
}

// gap skips spaces, line ends and comments.
func (s *fbpScanner) gap() {
	for {
		s.off = len(s.src.text) - len(strings.TrimLeftFunc(s.rest(), func(r rune) bool { return r == ' ' || r == '\t' || isBreak(r) }))
		if !strings.HasPrefix(s.rest(), "#") {
			return
		}
		s.off += len(s.line())
	}
}

// take skips a prefix if it is there.
func (s *fbpScanner) take(prefix string) bool {
	if !strings.HasPrefix(s.rest(), prefix) {
		return false
	}
	s.off += len(prefix)
	return true
}

// scan reads all statements.
func (s *fbpScanner) scan() {
	for s.off < len(s.src.text) {
		s.blanks()
		rest := s.rest()
		switch {
		case rest == "":
		case strings.HasPrefix(rest, "#"):
			s.comment()
		case beginsBreak(rest):
			_, size := utf8.DecodeRuneInString(rest)
			s.off += size
		case rest[0] == ',':
			s.fail(s.pos(), "a comma without a statement before it")
			s.off++
		default:
			if !s.statement() {
				s.off += len(s.line())
			}
		}
	}
}

// comment skips a comment at the beginning of a line; some say something.
func (s *fbpScanner) comment() {
	line := s.line()
	if m := fbpAnnotation.FindStringSubmatch(strings.TrimRight(line, " \t")); m != nil {
		s.annotations = append(s.annotations, fbpLine{m[1], strings.TrimSpace(m[2]), s.pos()})
	}
	s.off += len(line)
}

// statement reads a statement and what ends it; false after a problem.
func (s *fbpScanner) statement() bool {
	if m := fbpSetting.FindStringSubmatch(s.rest()); m != nil {
		pos := s.pos()
		s.off += len(m[0])
		word := fbpValue.FindString(s.rest())
		s.off += len(word)
		return s.setting(fbpLine{m[1], word, pos}) && s.end()
	}
	var hops []fbpHop
	for {
		hop, ok := s.hop()
		if !ok {
			return false
		}
		hops = append(hops, hop)
		before := s.off
		s.gap()
		if !s.take("->") {
			s.off = before
			break
		}
		s.gap()
	}
	s.chains = append(s.chains, hops)
	s.defaults = append(s.defaults, s.ports)
	return s.end()
}

// end reads what ends a statement.
func (s *fbpScanner) end() bool {
	s.blanks()
	comma := s.take(",")
	s.blanks()
	if strings.HasPrefix(s.rest(), "#") {
		s.off += len(s.line()) // not where an annotation may be
	}
	if comma || s.rest() == "" || beginsBreak(s.rest()) {
		return true
	}
	return s.fail(s.pos(), "%.20q does not go on with the statement: end it with a comma or a new line", s.line())
}

func beginsBreak(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return isBreak(r)
}

func (s *fbpScanner) setting(line fbpLine) bool {
	switch line.key {
	case "INPORT", "OUTPORT":
		m := fbpExport.FindStringSubmatch(line.text)
		if m == nil {
			return s.fail(line.pos, "%s=%.60s: write %s=Node.PORT:NAME", line.key, line.text, line.key)
		}
		if m[2] != "" && !s.declaration(m[1], m[2], line.pos) {
			return false
		}
		s.settings = append(s.settings, line)
	case "DEFAULT_INPORT", "DEFAULT_OUTPORT":
		if !fbpPort.MatchString(line.text) {
			return s.fail(line.pos, "%s=%.60s: write %s=PORT", line.key, line.text, line.key)
		}
		if line.key == "DEFAULT_INPORT" {
			s.ports[0] = line.text
		} else {
			s.ports[1] = line.text
		}
	case "EXPORT":
		return s.fail(line.pos, "EXPORT= does not say which way the port leads: write INPORT= or OUTPORT=")
	default:
		return s.fail(line.pos, "%s= is unknown: use INPORT=, OUTPORT=, DEFAULT_INPORT= or DEFAULT_OUTPORT=", line.key)
	}
	return true
}

// declaration keeps what an export says about its node besides.
func (s *fbpScanner) declaration(name, component string, pos Pos) bool {
	m := fbpComponent.FindStringSubmatch(component)
	if m == nil {
		return s.fail(pos, "%.40q is no component", component)
	}
	t := fbpTerm{name: name, index: -1, component: true, typ: m[1], meta: m[2], pos: pos}
	s.chains = append(s.chains, []fbpHop{{terms: []fbpTerm{t}, pos: pos}})
	s.defaults = append(s.defaults, s.ports)
	return true
}

// hop reads what stands between two arrows.
func (s *fbpScanner) hop() (fbpHop, bool) {
	hop := fbpHop{pos: s.pos()}
	rest := s.rest()
	switch {
	case strings.HasPrefix(rest, "'"):
		return s.quoted(hop)
	case rest != "" && strings.ContainsRune(`"{[-0123456789`, rune(rest[0])) && !strings.HasPrefix(rest, "->"):
		return s.json(hop)
	}
	for {
		s.blanks()
		term, ok := s.term()
		if !ok {
			break
		}
		hop.terms = append(hop.terms, term)
	}
	if len(hop.terms) == 0 {
		return hop, s.fail(s.pos(), "%.20q is neither a node, nor a port, nor data", s.line())
	}
	return hop, true
}

// quoted reads 'data', in which \' is a quote.
func (s *fbpScanner) quoted(hop fbpHop) (fbpHop, bool) {
	var b strings.Builder
	rest := s.rest()
	for i := 1; i < len(rest); i++ {
		switch {
		case rest[i] == '\\' && i+1 < len(rest) && rest[i+1] == '\'':
			i++
			b.WriteByte('\'')
		case rest[i] == '\'':
			s.off += i + 1
			hop.data = textValue(b.String())
			return hop, true
		default:
			b.WriteByte(rest[i])
		}
	}
	s.off = len(s.src.text)
	return hop, s.fail(hop.pos, "the quote is not closed")
}

// json reads data written as JSON.
func (s *fbpScanner) json(hop fbpHop) (fbpHop, bool) {
	dec := json.NewDecoder(strings.NewReader(s.rest()))
	var raw json.RawMessage
	if err := dec.Decode(&raw); err != nil {
		ends := !errors.Is(err, io.ErrUnexpectedEOF) && !strings.Contains(err.Error(), "max depth")
		s.fail(hop.pos, "the data is not valid JSON: %v", err)
		if !ends {
			s.off = len(s.src.text) // nothing that follows can be told from it
		}
		return hop, false
	}
	hop.data = readJSONAt(s.problems, s.src, s.off, string(raw))
	s.off += int(dec.InputOffset())
	return hop, hop.data != nil
}

// term reads a port, PORT[0], Node, Node(Component:metadata) or (Component).
func (s *fbpScanner) term() (fbpTerm, bool) {
	t := fbpTerm{index: -1, pos: s.pos()}
	t.name = s.word()
	s.off += len(t.name)
	if index := fbpIndex.FindString(s.rest()); index != "" && t.name != "" {
		n, err := strconv.Atoi(index[1 : len(index)-1])
		if err != nil || n > maxInt {
			s.fail(t.pos, "the index of %s is too great", t.name)
		}
		t.index = n
		s.off += len(index)
		return t, true
	}
	if m := fbpComponent.FindStringSubmatch(s.rest()); m != nil {
		t.component, t.typ, t.meta = true, m[1], m[2]
		s.off += len(m[0])
	}
	return t, t.name != "" || t.component
}

// word is the word that begins here: letters, digits, _, . and -, but no arrow.
func (s *fbpScanner) word() string {
	rest := s.rest()
	for i := range len(rest) {
		c := rest[i]
		letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		inner := c >= '0' && c <= '9' || c == '.' || c == '-' && !strings.HasPrefix(rest[i:], "->")
		if !letter && (i == 0 || !inner) {
			return rest[:i]
		}
	}
	return rest
}

// metadata makes metadata of "main,x=1,key=text".
func (s *fbpScanner) metadata(t fbpTerm) *value {
	if t.meta == "" {
		return nil
	}
	v := &value{}
	known := make(map[string]bool)
	for item := range strings.SplitSeq(t.meta, ",") {
		key, val, found := strings.Cut(item, "=")
		if !found {
			key, val = "routes", item
		}
		digits := strings.TrimLeft(val, "0")
		switch {
		case item == "" || key == "" || strings.Contains(val, "="):
			s.fail(t.pos, "the metadata %q: write key=text, or a route", item)
		case known[key]:
			s.fail(t.pos, "the metadata %q: %s is there already", item, key)
		case key != "x" && key != "y":
			v.put(key, textValue(val))
		case val == "" || strings.Trim(val, "0123456789") != "":
			s.fail(t.pos, "the metadata %q: %s must be a number", item, key)
		default:
			v.put(key, &value{kind: number, text: orZero(digits), size: len(val)})
		}
		known[key] = true
	}
	return v
}
