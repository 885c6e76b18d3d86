package graphfile

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// lineWidth is how long a line of YAML may be if it can be broken.
const lineWidth = 100

// yamlWriter writes values as YAML that every reader understands alike.
type yamlWriter struct {
	strings.Builder
	entries int
}

// writeYAML writes a file; its parts and their entries begin lines of their own.
func writeYAML(v *value) (string, error) {
	var w yamlWriter
	w.members(v, 0, 2)
	if w.entries > maxEntries {
		return "", &Problem{Text: fmt.Sprintf("the file would have more than %d entries: write JSON", maxEntries)}
	}
	return w.String(), fit(w.Len(), v)
}

// members writes the entries of a map. blocks is how many levels are never put into
// one line.
func (w *yamlWriter) members(v *value, indent, blocks int) {
	for _, m := range v.members {
		w.entries++
		w.WriteString(strings.Repeat(" ", indent) + flowKey(m.key) + ":")
		inner := blocks - 1
		if m.key == "graphs" && blocks == 2 {
			inner = 3 // a map of graphs
		}
		w.nested(m.val, indent, inner)
	}
}

// nested writes what stands behind a colon or, indented like its key, a dash.
func (w *yamlWriter) nested(v *value, indent, blocks int) {
	empty := len(v.items)+len(v.members) == 0
	if v.kind != list && v.kind != object || empty {
		w.WriteString(" ")
		w.scalar(v, indent)
		return
	}
	if line, ok := flow(v, lineWidth-indent); ok && blocks < 1 {
		w.WriteString(" " + line + "\n")
		return
	}
	w.WriteString("\n")
	if v.kind == object {
		w.members(v, indent+2, blocks)
		return
	}
	for _, item := range v.items {
		w.entries++
		w.WriteString(strings.Repeat(" ", indent+2) + "-")
		w.nested(item, indent+2, 0)
	}
}

// scalar writes a text, number or the like, or an empty map or list.
func (w *yamlWriter) scalar(v *value, indent int) {
	switch {
	case v.kind == text && isBlock(v.text):
		w.block(v.text, indent)
	case v.kind == text:
		w.WriteString(quoted(v.text, false) + "\n")
	default:
		w.Write(v.raw())
		w.WriteByte('\n')
	}
}

// isBlock reports whether a text is written as it is, line by line.
func isBlock(s string) bool {
	if !strings.Contains(strings.TrimSuffix(s, "\n"), "\n") || strings.HasSuffix(s, "\n\n") {
		return false
	}
	for i, line := range strings.Split(s, "\n") {
		if strings.TrimSpace(line) != strings.TrimRight(line, " ") && i == 0 || strings.TrimRight(line, " ") != line || !printable(line) {
			return false
		}
	}
	return s[0] != '\n'
}

func (w *yamlWriter) block(s string, indent int) {
	if strings.HasSuffix(s, "\n") {
		w.WriteString("|\n")
	} else {
		w.WriteString("|-\n")
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(s, "\n"), "\n") {
		if line != "" {
			w.WriteString(strings.Repeat(" ", indent+2) + line)
		}
		w.WriteString("\n")
	}
}

// flow is a value in one line of some width at most.
func flow(v *value, width int) (string, bool) {
	var parts []string
	width -= 2
	put := func(key string, val *value) bool {
		s, ok := flow(val, width)
		width -= len(key) + len(s) + 2
		parts = append(parts, key+s)
		return ok && width >= -2
	}
	if width < 0 {
		return "", false
	}
	switch v.kind {
	case list:
		for _, item := range v.items {
			if !put("", item) {
				return "", false
			}
		}
		return "[" + strings.Join(parts, ", ") + "]", true
	case object:
		for _, m := range v.members {
			if !put(flowKey(m.key)+": ", m.val) {
				return "", false
			}
		}
		return "{" + strings.Join(parts, ", ") + "}", true
	case text:
		if isBlock(v.text) {
			return "", false
		}
		return quoted(v.text, true), true
	default:
		return string(v.raw()), true
	}
}

var (
	// plainFlow are texts that need no quotes inside of brackets, plainBlock elsewhere.
	plainFlow  = regexp.MustCompile(`^[A-Za-z_/][A-Za-z0-9_./>()-]*( [A-Za-z0-9_./>()-]+)*$`)
	plainBlock = regexp.MustCompile(`^[A-Za-z_/$][A-Za-z0-9_./>(){}$,'-]*( [A-Za-z0-9_./>(){}$,'-]+)*$`)
	// otherwise are plain texts that some readers take for something else.
	otherwise = []string{"y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf"}
)

// quoted is a text with the quotes that it needs.
func quoted(s string, inFlow bool) string {
	plain := plainBlock
	if inFlow {
		plain = plainFlow
	}
	switch {
	case plain.MatchString(s) && !slices.Contains(otherwise, strings.ToLower(s)):
		return s
	case printable(s) && !strings.Contains(s, "\n") && strings.ContainsAny(s, `"\$`):
		return "'" + strings.ReplaceAll(s, "'", "''") + "'"
	default:
		return escapeOdd(string(quote(s)))
	}
}

func flowKey(key string) string { return quoted(key, true) }

// printable reports whether a text can stand in YAML without escapes.
func printable(s string) bool {
	for _, r := range s {
		if !unicode.IsPrint(r) || r == utf8.RuneError {
			return false
		}
	}
	return true
}

// escapeOdd escapes what JSON allows in a text and YAML does not.
func escapeOdd(s string) string {
	const hex = "0123456789abcdef"
	if printable(s) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if unicode.IsPrint(r) || r > 0xffff {
			b.WriteRune(r)
			continue
		}
		b.WriteString(`\u`)
		for shift := 12; shift >= 0; shift -= 4 {
			b.WriteByte(hex[r>>shift&15])
		}
	}
	return b.String()
}
