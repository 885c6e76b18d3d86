package graphfile

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// source is the text of a file and where its lines begin.
type source struct {
	text  string
	lines []int // the offset of each line
	runes []int // the number of characters before each block of the text
}

// blockSize is how much text is counted again for each position.
const blockSize = 256

func newSource(text string) *source {
	s := &source{text: text, lines: []int{0}}
	count := 0
	for i := range len(text) {
		if i%blockSize == 0 {
			s.runes = append(s.runes, count)
		}
		if utf8.RuneStart(text[i]) {
			count++
		}
		if text[i] == '\n' || text[i] == '\r' && !strings.HasPrefix(text[i+1:], "\n") {
			s.lines = append(s.lines, i+1)
		}
	}
	s.runes = append(s.runes, count) // if the last block is full
	return s
}

// before is the number of characters before an offset.
func (s *source) before(offset int) int {
	block := offset / blockSize
	count := s.runes[block]
	for i := block * blockSize; i < offset; i++ {
		if utf8.RuneStart(s.text[i]) {
			count++
		}
	}
	return count
}

// pos is the place of an offset.
func (s *source) pos(offset int) Pos {
	offset = max(0, min(offset, len(s.text)))
	line, found := slices.BinarySearch(s.lines, offset)
	if !found {
		line--
	}
	return Pos{Line: line + 1, Column: s.before(offset) - s.before(s.lines[line]) + 1}
}

// newText checks what holds for all formats: size and UTF-8.
func newText(p *problems, data []byte) (*source, bool) {
	if len(data) > MaxSize {
		p.add(Pos{}, "", "the file has %d bytes, at most %d are allowed", len(data), MaxSize)
		return nil, false
	}
	s := newSource(strings.TrimPrefix(string(data), "\ufeff"))
	for i, r := range s.text {
		if r == utf8.RuneError && !strings.HasPrefix(s.text[i:], "\ufffd") {
			p.add(s.pos(i), "", "the byte %#x is not valid UTF-8", s.text[i])
			return nil, false
		}
	}
	return s, true
}

// noControls refuses the characters that YAML does not allow.
func (s *source) noControls(p *problems) bool {
	for i, r := range s.text {
		if r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0x7f || r == '\ufeff' {
			p.add(s.pos(i), "", "the control character %U is not allowed here: in double quotes, write \\u%04x", r, r)
			return false
		}
	}
	return true
}
