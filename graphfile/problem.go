package graphfile

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/weirworks/weir/port"
)

// maxProblems is how many problems of one file are told.
const maxProblems = 1000

// Problem is one thing that is wrong with a file.
type Problem struct {
	// File is the name that the file was parsed under; may be empty.
	File string
	// Line and Column say where, counted from 1; 0 if that is not known.
	Line, Column int
	// Path says which element it is about, as in nodes.parse.in.seed; empty for
	// the whole file.
	Path string
	// Text says what is wrong, and what would be right.
	Text string
}

// Error returns the problem in one line: "logs.yaml:7:5: nodes.parse: text".
func (p *Problem) Error() string {
	var b strings.Builder
	if p.File != "" {
		b.WriteString(p.File + ":")
	}
	if p.Line > 0 {
		fmt.Fprintf(&b, "%d:%d:", p.Line, p.Column)
	}
	if b.Len() > 0 {
		b.WriteByte(' ')
	}
	if p.Path != "" {
		b.WriteString(p.Path + ": ")
	}
	return b.String() + p.Text
}

// Problems returns the problems that an error of this package is made of, in the
// order of the file.
func Problems(err error) []*Problem {
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		var all []*Problem
		for _, e := range joined.Unwrap() {
			all = append(all, Problems(e)...)
		}
		return all
	}
	var problem *Problem
	if errors.As(err, &problem) {
		return []*Problem{problem}
	}
	return nil
}

// problems collects what is wrong with one file.
type problems struct {
	file  string
	list  []*Problem
	known map[string]bool // by path and text, and position if there is no path
	paths map[string]bool // about which something has been said
	more  int             // those beyond maxProblems
	hints int
	left  *Problem // by the validator to Check, which says it better
	blind bool     // an edge, or what feeds a port, could not be read
}

func newProblems(file string) *problems {
	return &problems{file: file, known: make(map[string]bool), paths: make(map[string]bool)}
}

// fork returns problems that begin with those of p, which does not get further ones.
func (p *problems) fork() *problems {
	next := *p
	next.list, next.known, next.paths = slices.Clone(p.list), maps.Clone(p.known), maps.Clone(p.paths)
	return &next
}

// add reports a problem, unless the same has been said about the same path.
func (p *problems) add(pos Pos, path, format string, args ...any) {
	text := strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", " ")
	key := path + "\x00" + text
	if path == "" {
		key += fmt.Sprint(pos)
	}
	p.paths[path] = true
	switch {
	case p.known[key]:
	case len(p.list) >= maxProblems:
		p.more++
	default:
		p.known[key] = true
		p.list = append(p.list, &Problem{File: p.file, Line: pos.Line, Column: pos.Column, Path: path, Text: text})
	}
}

// leave makes about true: others say what there is to say.
func (p *problems) leave(path string) { p.paths[path] = true }

// about reports whether something has been said about a path.
func (p *problems) about(path string) bool { return p.paths[path] }

// err joins the problems in the order of the file.
func (p *problems) err() error {
	slices.SortStableFunc(p.list, func(a, b *Problem) int {
		return Pos{a.Line, a.Column}.compare(Pos{b.Line, b.Column})
	})
	var errs []error
	if p.more > 0 {
		errs = append(errs, &Problem{File: p.file, Text: fmt.Sprintf("%d more problems are not shown", p.more)})
	}
	for _, problem := range p.list {
		errs = append(errs, problem)
	}
	return errors.Join(errs...)
}

func (p Pos) compare(q Pos) int {
	return cmp.Or(cmp.Compare(p.Line, q.Line), cmp.Compare(p.Column, q.Column))
}

// What a hint may cost.
const (
	maxHints      = 50
	maxCandidates = 10_000
	maxHintName   = 64
)

// hint proposes the candidate that is nearest to a wrong name.
func (p *problems) hint(name string, candidates iter.Seq[string]) string {
	if p.hints >= maxHints || name == "" || len(name) > maxHintName {
		return ""
	}
	p.hints++
	best, least, seen := "", max(1, min(3, utf8.RuneCountInString(name)/3))+1, 0
	for c := range candidates {
		if seen++; seen > maxCandidates {
			return ""
		}
		if c == name || abs(len(c)-len(name)) >= least {
			continue
		}
		d := distance(strings.ToLower(name), strings.ToLower(c))
		if d < least || d == least && best != "" && c < best {
			best, least = c, d
		}
	}
	return didYouMean(best)
}

func didYouMean(name string) string {
	if name == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", name)
}

func abs(n int) int { return max(n, -n) }

// distance is the number of letters to insert, remove, replace or swap with their
// neighbour to make b of a.
func distance(a, b string) int {
	var before, last []int
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before, last, row = last, row, make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			same := 1
			if a[i] == b[j] {
				same = 0
			}
			row[j+1] = min(last[j]+same, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(b)]
}

// show is a name as it appears in a path: quoted and cut if it is no name.
func show(name string) string {
	if port.CheckName(name) == nil {
		return name
	}
	return fmt.Sprintf("%.40q", name)
}

// under is the path of something inside of path.
func under(path string, names ...string) string {
	for _, name := range names {
		if path != "" {
			path += "."
		}
		path += name
	}
	return path
}

func at(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// wrongName says why a text is no name; empty if it is one.
func wrongName(name string) string {
	err := port.CheckName(name)
	switch {
	case err == nil:
		return ""
	case name == "":
		return "a name cannot be empty"
	case len(name) > port.MaxName:
		return fmt.Sprintf("the name %.40q… has %d bytes, %d are allowed", name, len(name), port.MaxName)
	}
	hint := ""
	if tidied := tidy(name); strings.Trim(tidied, "_") != "" && port.CheckName(tidied) == nil {
		hint = didYouMean(tidied)
	}
	return fmt.Sprintf("%q is not a name: use letters, digits and _ only%s", name, hint)
}

// tidy makes a name of a text: what is not allowed becomes _.
func tidy(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, name)
}
