package top

import (
	"slices"
	"strings"
	"unicode"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
)

// editor is one line of text that is being typed.
type editor struct {
	text []rune
	at   int // the cursor is before this rune
}

func newEditor(text string) editor {
	r := []rune(text)
	return editor{text: r, at: len(r)}
}

func (e *editor) String() string { return string(e.text) }

// key edits the text; it returns false for keys that mean nothing to it.
func (e *editor) key(k tea.KeyPressMsg) bool {
	switch k.String() {
	case "left", "ctrl+b":
		e.at = max(e.at-1, 0)
	case "right", "ctrl+f":
		e.at = min(e.at+1, len(e.text))
	case "home", "ctrl+a":
		e.at = 0
	case "end", "ctrl+e":
		e.at = len(e.text)
	case "backspace", "ctrl+h":
		e.remove(max(e.at-1, 0), e.at)
	case "delete", "ctrl+d":
		e.remove(e.at, min(e.at+1, len(e.text)))
	case "ctrl+u":
		e.remove(0, e.at)
	case "ctrl+k":
		e.remove(e.at, len(e.text))
	case "ctrl+w", "alt+backspace":
		from := e.at
		for from > 0 && e.text[from-1] == ' ' {
			from--
		}
		for from > 0 && e.text[from-1] != ' ' {
			from--
		}
		e.remove(from, e.at)
	default:
		if k.Text == "" {
			return false
		}
		e.insert(k.Text)
	}
	return true
}

// insert puts a text at the cursor: in one line, and without control characters.
func (e *editor) insert(text string) {
	var in []rune
	for _, r := range text {
		switch {
		case r == '\n' || r == '\t':
			in = append(in, ' ')
		case unicode.IsPrint(r):
			in = append(in, r)
		}
	}
	e.text = slices.Insert(e.text, e.at, in...)
	e.at += len(in)
}

func (e *editor) remove(from, to int) {
	e.text = slices.Delete(e.text, from, to)
	e.at = from
}

// view is the part of the text around the cursor that fits, and the column of the cursor.
func (e *editor) view(columns int) (text string, cursor int) {
	columns = max(columns, 2)
	from := 0
	for from < e.at && lipgloss.Width(string(e.text[from:e.at])) > columns-1 {
		from++
	}
	var b strings.Builder
	for _, r := range e.text[from:] {
		if lipgloss.Width(b.String()+string(r)) > columns {
			break
		}
		b.WriteRune(r)
	}
	return b.String(), lipgloss.Width(string(e.text[from:e.at]))
}
