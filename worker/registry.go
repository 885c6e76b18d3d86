package worker

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// kind is one registered type of worker.
type kind struct {
	name    string
	layout  *port.Layout
	options Options
}

// registry holds the types that an engine runs. It does not change after newRegistry.
type registry struct {
	kinds map[string]*kind
	names []string
}

func newRegistry(workers []Worker) (*registry, error) {
	r := &registry{kinds: make(map[string]*kind, len(workers))}
	for _, w := range workers {
		name, err := job.TypeOf(w)
		if err != nil {
			return nil, fmt.Errorf("registering %T: %w", w, err)
		}
		if r.kinds[name] != nil {
			return nil, fmt.Errorf("registering %T: %w: worker type %q is registered twice", w, job.ErrExists, name)
		}
		layout, err := port.Describe(reflect.TypeOf(w))
		if err != nil {
			return nil, fmt.Errorf("registering %T: %w", w, err)
		}
		k := &kind{name: name, layout: layout}
		if c, ok := w.(Configured); ok {
			k.options = c.WorkerOptions()
		}
		if err := k.options.Validate(); err != nil {
			return nil, fmt.Errorf("registering %T: %w", w, err)
		}
		if _, ok := layout.New().(Worker); !ok {
			return nil, fmt.Errorf("registering %T: %w: Run must be a method of *%s", w, job.ErrConfig, layout.Type())
		}
		r.kinds[name] = k
		r.names = append(r.names, name)
	}
	slices.Sort(r.names)
	return r, nil
}

// instance makes a worker for one run.
func (k *kind) instance(args json.RawMessage, b port.Binder) (Worker, error) {
	w := k.layout.New()
	if len(args) > 0 {
		if err := k.layout.SetParams(w, args); err != nil {
			return nil, err
		}
	}
	if err := k.layout.Bind(w, b); err != nil {
		return nil, err
	}
	return w.(Worker), nil //nolint:forcetypeassert // checked by newRegistry
}
