package worker_test

import (
	"bytes"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// What users' packages see of this one reaches no type of go-redis or asynq, not even by unexported fields: each package that does is
// compiled with some 4,000 methods of theirs, which takes seconds.
func TestWeight(t *testing.T) {
	out, err := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for line := range bytes.Lines(out) {
		path, file, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
		files[path] = file
	}
	compiled := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(files[path]) })
	for _, one := range []struct {
		pkg     string
		reaches bool
	}{{"github.com/weirworks/weir/worker", false}, {"github.com/weirworks/weir/internal/delivery", true}} {
		pkg, err := compiled.Import(one.pkg)
		if err != nil {
			t.Fatal(err)
		}
		w := walk{seen: map[types.Type]bool{}}
		for _, name := range pkg.Scope().Names() {
			w.object(name, pkg.Scope().Lookup(name))
		}
		if (w.found != "") != one.reaches {
			t.Errorf("%s reaches a type of go-redis or asynq: %q, want %t", one.pkg, w.found, one.reaches)
		}
	}
}

// walk goes from type to type, as the compiler does that reads a package.
type walk struct {
	seen  map[types.Type]bool
	found string // by which way, if one is of go-redis or asynq
}

func (w *walk) object(way string, o types.Object) { w.walk(way, o.Type()) }

func (w *walk) walk(way string, t types.Type) {
	if t == nil || w.seen[t] || w.found != "" {
		return
	}
	w.seen[t] = true
	switch t := t.(type) {
	case *types.Named:
		if p := t.Obj().Pkg(); p != nil && (strings.HasPrefix(p.Path(), "github.com/redis/") || strings.HasPrefix(p.Path(), "github.com/hibiken/")) {
			w.found = way + " " + t.String()
			return
		}
		way += " > " + t.Obj().Name()
		w.walk(way, t.Underlying())
		for m := range t.Methods() {
			w.object(way+"."+m.Name(), m)
		}
		for arg := range t.TypeArgs().Types() {
			w.walk(way, arg)
		}
	case *types.Alias:
		w.walk(way, types.Unalias(t))
	case *types.Struct:
		for f := range t.Fields() {
			w.object(way+"."+f.Name(), f)
		}
	case *types.Interface:
		for m := range t.Methods() {
			w.object(way+"."+m.Name(), m)
		}
	case *types.Signature:
		w.walk(way, t.Params())
		w.walk(way, t.Results())
	case *types.Tuple:
		for v := range t.Variables() {
			w.object(way, v)
		}
	case *types.Map:
		w.walk(way, t.Key())
		w.walk(way, t.Elem())
	case interface{ Elem() types.Type }: // pointers, slices, arrays, channels
		w.walk(way, t.Elem())
	}
}
