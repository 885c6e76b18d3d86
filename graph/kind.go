package graph

import (
	"context"
	"errors"
	"fmt"
	"path"
	"reflect"

	"github.com/weirworks/weir/job"
)

var (
	contextType = reflect.TypeFor[context.Context]()
	errorType   = reflect.TypeFor[error]()
	composite   = reflect.TypeFor[Composite]()
	registered  = reflect.TypeFor[*job.Registered]()
	// workers is the path of the package that says what a worker is. This one does not import it: a
	// graph is a description, which needs nothing of what runs it.
	workers = path.Dir(reflect.TypeFor[Graph]().PkgPath()) + "/worker"
)

// checkWorker refuses a pointer type that is neither a worker nor a subgraph: nothing would ever
// run its jobs.
func checkWorker(t reflect.Type) error {
	if t.Implements(composite) || t == registered {
		return nil
	}
	const need = "a worker needs the method Run(context.Context, *worker.Run) error, a subgraph Build(*graph.Graph)"
	run, has := t.MethodByName("Run")
	switch {
	case has && isRun(run.Type):
		return nil
	case has:
		return fmt.Errorf("its method Run is %s: %s", signature(run.Type), need)
	}
	if build, has := t.MethodByName("Build"); has {
		return fmt.Errorf("its method Build is %s: %s", signature(build.Type), need)
	}
	return errors.New("it is neither a worker nor a subgraph: " + need)
}

// isRun tells whether a method, with its receiver, is that of a worker.
func isRun(m reflect.Type) bool {
	if m.NumIn() != 3 || m.IsVariadic() || m.NumOut() != 1 {
		return false
	}
	run := m.In(2)
	return m.In(1) == contextType && m.Out(0) == errorType &&
		run.Kind() == reflect.Pointer && run.Elem().Name() == "Run" && run.Elem().PkgPath() == workers
}

// signature is a method's type without its receiver.
func signature(m reflect.Type) string {
	var in, out []reflect.Type
	for i := 1; i < m.NumIn(); i++ {
		in = append(in, m.In(i))
	}
	for i := range m.NumOut() {
		out = append(out, m.Out(i))
	}
	return reflect.FuncOf(in, out, m.IsVariadic()).String()
}
