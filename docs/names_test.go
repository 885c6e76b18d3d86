package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// goNames are the exported names of packages: functions, types and so on as package.Name, and the methods and fields of types.
type goNames struct {
	all      map[string]bool
	members  map[string]map[string]bool
	embedded map[string][]string
}

// read adds those of a package.
func (g goNames) read(t *testing.T, pkg string) {
	t.Helper()
	files, err := filepath.Glob("../" + pkg + "/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil {
					g.all[pkg+"."+d.Name.Name] = true
				} else {
					g.member(typeName(d.Recv.List[0].Type), d.Name.Name)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					g.spec(pkg, spec)
				}
			}
		}
	}
}

func (g goNames) spec(pkg string, spec ast.Spec) {
	switch s := spec.(type) {
	case *ast.ValueSpec:
		for _, name := range s.Names {
			g.all[pkg+"."+name.Name] = true
		}
	case *ast.TypeSpec:
		g.all[pkg+"."+s.Name.Name] = true
		g.member(s.Name.Name, "")
		var fields *ast.FieldList
		switch of := s.Type.(type) {
		case *ast.StructType:
			fields = of.Fields
		case *ast.InterfaceType:
			fields = of.Methods
		default:
			return
		}
		for _, f := range fields.List {
			for _, name := range f.Names {
				g.member(s.Name.Name, name.Name)
			}
			if len(f.Names) == 0 {
				g.embedded[s.Name.Name] = append(g.embedded[s.Name.Name], typeName(f.Type))
			}
		}
	}
}

func (g goNames) member(typ, name string) {
	if g.members[typ] == nil {
		g.members[typ] = map[string]bool{}
	}
	g.members[typ][name] = true
}

// has tells whether a type has a method or a field, by itself or by what it embeds.
func (g goNames) has(typ, name string) bool {
	if g.members[typ][name] {
		return true
	}
	for _, of := range g.embedded[typ] {
		if of != typ && g.has(of, name) {
			return true
		}
	}
	return false
}

// typeName is the name of a type without its package, pointer and parameters.
func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.StarExpr:
		return typeName(e.X)
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.IndexExpr:
		return typeName(e.X)
	case *ast.IndexListExpr:
		return typeName(e.X)
	}
	return ""
}

var (
	quoted = regexp.MustCompile("`[^`\n]+`")
	goName = regexp.MustCompile(`(?:^|[^\w./'"-])(\w+)\.([A-Z]\w*)`)
)

// The names of Go in the documents are there. Those of other programs are in migrate.md.
func TestGoNames(t *testing.T) {
	g := goNames{map[string]bool{}, map[string]map[string]bool{}, map[string][]string{}}
	packages := map[string]bool{"worker": true, "job": true, "graph": true, "port": true}
	for pkg := range packages {
		g.read(t, pkg)
	}
	values := map[string]string{"run": "Run", "handle": "Handle", "client": "Client"}
	files, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(files, "../README.md") {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, code := range quoted.FindAllString(string(text), -1) {
			for _, m := range goName.FindAllStringSubmatch(code, -1) {
				of, member := m[1], m[2]
				if value := values[of]; value != "" {
					of = value
				}
				wrong := packages[of] && !g.all[of+"."+member] || g.members[of] != nil && ast.IsExported(of) && !g.has(of, member)
				if wrong && name != "migrate.md" {
					t.Errorf("%s: %s: there is no %s.%s", name, strings.Trim(code, "`"), of, member)
				}
			}
		}
	}
}
