package client_test

import (
	"go/token"
	"reflect"
	"strings"
	"testing"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/job"
)

// Whoever uses a client can name all that it takes and returns.
func TestNothingInternalIsSeen(t *testing.T) {
	t.Parallel()
	seen := map[reflect.Type]bool{}
	var look func(path string, typ reflect.Type)
	look = func(path string, typ reflect.Type) {
		if seen[typ] || typ.PkgPath() != "" && !token.IsExported(typ.Name()) {
			return
		}
		seen[typ] = true
		if strings.Contains(typ.PkgPath(), "/internal/") {
			t.Errorf("%s is of type %s, which no program of a user can name", path, typ)
			return
		}
		switch typ.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Chan:
			look(path, typ.Elem())
		case reflect.Map:
			look(path, typ.Key())
			look(path, typ.Elem())
		case reflect.Func:
			for i := range typ.NumIn() {
				look(path, typ.In(i))
			}
			for i := range typ.NumOut() {
				look(path, typ.Out(i))
			}
		case reflect.Struct:
			for _, f := range reflect.VisibleFields(typ) {
				if f.IsExported() {
					look(path+"."+f.Name, f.Type)
				}
			}
		}
		if !strings.HasPrefix(typ.PkgPath(), "github.com/weirworks/weir/") {
			return
		}
		for _, all := range []reflect.Type{typ, reflect.PointerTo(typ)} {
			for i := range all.NumMethod() {
				look(path+"."+all.Method(i).Name, all.Method(i).Type)
			}
		}
	}
	for _, typ := range []reflect.Type{
		reflect.TypeFor[client.Client](), reflect.TypeFor[client.LogReader](), reflect.TypeFor[client.ManyError](), reflect.TypeFor[client.DeadLettersError](),
		reflect.TypeFor[client.AdvisedError](), reflect.TypeFor[client.FailedError](), reflect.TypeFor[job.DuplicateError](), reflect.TypeFor[job.New](),
	} {
		look(typ.String(), typ)
	}
	for _, typ := range []reflect.Type{reflect.TypeFor[client.Handle](), reflect.TypeFor[job.Info](), reflect.TypeFor[job.Plan]()} {
		if !seen[typ] {
			t.Errorf("%s was not looked at", typ)
		}
	}
}
