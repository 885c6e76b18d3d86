package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// replaced are words that this project once used in a sense of its own, each with what to write in its place: readers
// stumbled over them.
var replaced = []struct{ words, write string }{
	{`rests|parked|held up`, `"is suspended", "waits", "rate limited", "blocked"`},
	{`at work`, `"running" or "active"`},
	{`in line`, `"queued" or "pending"`},
	{`asleep`, `"suspended"`},
	{`on a guess|heirs?`, `"speculative", "speculation", "downstream prefetch"`},
	{`repetitions?`, `"repeat" or "run"; of runs that share a commit "run batching"`},
	{`appetite`, `"prefetch size"`},
	{`seats?|naps?|nudges?|nudged|bells?|doorbells?|ears?`, `"slot", "poll interval", "notification", "notifier"`},
	{`courier|chores?`, `"relay", "background task"`},
	{`lull`, `"quiescence"`},
	{`deaths?`, `"crash"`},
	{`born|unborn`, `"created", "not created yet"`},
	{`signs? of life`, `"heartbeat"`},
	{`alarms?`, `"timer"`},
	{`is no (?:JSON|number)`, `"is not valid JSON", "is not a number"`},
	{`without parent`, `"root job"`},
	{`mend|mended|wanting`, `"fix", "failed"`},
	{`for ever`, `"indefinitely"`},
	{`all the same`, `"anyway"`},
	{`so many`, `"N" or "how many"`},
	{`sabotaged?`, `"mutation test"`},
	{`guess|guesses|fused?`, `"speculation", "chain"`},
	{`porter|typer|silencer`, `"PortDeclarer", "TypeNamer", "StatusHider"`},
	{`concerns`, `"warnings"`},
	{`messages that go round`, `"cycle" or "feedback edge"`},
	{`a type you do not link`, `"a job by type name"`},
}

// about are files whose subject is one of these words.
var about = map[string]string{
	"CHANGELOG.md":        "what was written stays",
	"docs/performance.md": "a history of experiments",
}

func TestWords(t *testing.T) {
	forbidden := make([]*regexp.Regexp, len(replaced))
	for i, r := range replaced {
		forbidden[i] = regexp.MustCompile(`(?i)(?:^|[^-\w/.])(` + r.words + `)(?:$|[^-\w/])`)
	}
	look := func(at, text string) {
		for i, re := range forbidden {
			if m := re.FindStringSubmatch(text); m != nil {
				t.Errorf("%s: %q in %q: write %s", at, m[1], strings.TrimSpace(text), replaced[i].write)
			}
		}
	}
	files := 0
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		name := filepath.ToSlash(strings.TrimPrefix(path, ".."+string(filepath.Separator)))
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			return skipped(name, entry)
		case about[name] != "":
		case strings.HasSuffix(name, ".md"):
			files++
			return lookAtText(path, name, look)
		case strings.HasSuffix(name, ".go"):
			files++
			return lookAtCode(path, name, look)
		}
		return nil
	})
	if err != nil || files < 300 {
		t.Fatalf("looked at %d files: %v", files, err)
	}
}

// skipped leaves out folders that hold nothing which users read.
func skipped(name string, entry fs.DirEntry) error {
	switch {
	case name == "bin", name == "bench", name == "chaos", name == "internal/mutation",
		entry.Name() == "node_modules", entry.Name() == "testdata", strings.HasPrefix(entry.Name(), ".") && entry.Name() != "..":
		return fs.SkipDir
	}
	return nil
}

var (
	code  = regexp.MustCompile("`[^`]*`")
	field = regexp.MustCompile(`json:"[^"]*"`) // names in JSON stay
)

// lookAtText looks at a document's lines outside of code.
func lookAtText(path, name string, look func(at, text string)) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	fenced := false
	for i, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		}
		if !fenced {
			look(name+":"+strconv.Itoa(i+1), code.ReplaceAllString(line, "``"))
		}
	}
	return nil
}

// lookAtCode looks at the names of a Go file that users or readers of test results see, and at the strings that are sentences
// unless it is a test.
func lookAtCode(path, name string, look func(at, text string)) error {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	at := func(pos token.Pos) string { return name + ":" + strconv.Itoa(set.Position(pos).Line) }
	test := strings.HasSuffix(name, "_test.go")
	for _, id := range declared(file) {
		if id.IsExported() && (!test || strings.HasPrefix(id.Name, "Test")) {
			look(at(id.Pos()), capital.ReplaceAllString(id.Name, "$1 $2"))
		}
	}
	if test {
		return nil
	}
	ast.Inspect(file, func(n ast.Node) bool {
		lit, ok := n.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING {
			return true
		}
		text, err := strconv.Unquote(lit.Value)
		if err == nil && strings.Contains(text, " ") { // one word is a key or a name
			look(at(lit.Pos()), field.ReplaceAllString(text, ""))
		}
		return true
	})
	return nil
}

// capital is where a word begins in a name such as FreeSlot.
var capital = regexp.MustCompile(`([a-z0-9])([A-Z])`)

// declared are the names of a file: of functions, methods, types, fields, methods of interfaces, constants and variables.
func declared(file *ast.File) (names []*ast.Ident) {
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			names = append(names, d.Name)
		case *ast.GenDecl:
			ast.Inspect(d, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.TypeSpec:
					names = append(names, n.Name)
				case *ast.ValueSpec:
					names = append(names, n.Names...)
				case *ast.Field:
					names = append(names, n.Names...)
				case *ast.FuncLit, *ast.FuncType:
					return false
				}
				return true
			})
		}
	}
	return names
}
