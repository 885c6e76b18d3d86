package worker

import (
	"encoding/json"
	"fmt"
	"reflect"
	"runtime/debug"
	"slices"
	"sync/atomic"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// kind is one registered type of worker.
type kind struct {
	name    string
	version int    // what the worker declares, see job.Versioned
	worker  Worker // what was registered; runs get copies of it
	layout  *port.Layout
	ports   []port.Spec // those of the layout and more
	silent  bool
	options Options

	prefetch atomic.Int64  // about how many messages of a port a run reads
	alone    atomic.Bool   // its runs need the store, so that they are not chained
	limited  atomic.Bool   // its runs have a limit, of those at once or a rate, so that they are not chained
	rated    atomic.Bool   // … a rate: each of its runs is committed by itself
	took     atomic.Int64  // nanoseconds that a run takes, about; 0: not known yet
	here     atomic.Int64  // runs in progress
	most     atomic.Int64  // of them, 0 for any number: MaxRunningHere, see LimitHere
	ended    atomic.Int64  // when one of several ended last: Unix nanoseconds
	catching atomic.Bool   // the engine looks for jobs of the type, or will before long
	catchNow chan struct{} // has a value when it is to do so at once
	missed   atomic.Bool   // a notification for it was passed on meanwhile, as it was crowded
}

// registry holds the types that an engine runs. It does not change after newRegistry: who adds types makes another one.
type registry struct {
	kinds  map[string]*kind
	names  []string
	limits map[string]int // runs a minute by type, "" for others

	running []store.RunLimit // of types with MaxRunning or MaxRuns
	crowds  bool             // some types have MaxRunningHere

	batches atomic.Pointer[map[string]int] // prefetch sizes smaller than a batch, by type

	build     string                   // see fingerprint
	withBuild []string                 // what it asks for, and its build
	asked     atomic.Pointer[[]string] // see asks
}

// learn notes how much of the messages that came with its snapshot a run has read, and those
// that followed it: the next one of the type gets about that many. What is not read would be
// sent again with each run.
func (r *registry) learn(one *ran) {
	if one.run == nil {
		return
	}
	unread, more, paged := false, false, false
	for _, in := range one.run.ins.all {
		if in.hidden > 0 {
			return // it was not given what it would read
		}
		paged = paged || in.paged
		unread = unread || len(in.items) > 0
		more = more || in.left > len(in.items)
	}
	k, prefetch := r.kinds[one.snap.Info.Type], int64(batchMessages)
	switch {
	case paged:
	case unread && len(one.sum.Before) > 0: // nearly as many as runs may have that follow each other
		prefetch = int64(min(one.read+one.read/8+1, batchMessages))
	case unread, more:
		prefetch = int64(min(2*one.read+1, batchMessages))
	default:
		return
	}
	if was := k.prefetch.Load(); was < batchMessages && prefetch < was && k.batches() { // a short batch does not make the next ones short
		prefetch = was - (was-prefetch+7)/8
	}
	if k.prefetch.Swap(prefetch) == prefetch {
		return
	}
	batches := make(map[string]int)
	for name, k := range r.kinds {
		if n := k.prefetch.Load(); n < batchMessages {
			batches[name] = int(n)
		}
	}
	r.batches.Store(&batches)
}

func newRegistry(workers []Worker, defaults Options) (*registry, error) {
	r := &registry{
		kinds:  make(map[string]*kind, len(workers)),
		limits: map[string]int{"": Options{}.maxRuns()},
	}
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
		version, err := job.VersionOf(w)
		if err != nil {
			return nil, fmt.Errorf("registering %T: %w", w, err)
		}
		k := &kind{name: name, version: version, worker: w, layout: layout, catchNow: make(chan struct{}, 1)}
		k.prefetch.Store(batchMessages)
		if c, ok := w.(Configured); ok {
			k.options = c.WorkerOptions()
		}
		if err := k.options.Validate(); err != nil {
			return nil, fmt.Errorf("registering %T: %w", w, err)
		}
		k.options = k.options.or(defaults)
		k.most.Store(int64(k.options.MaxRunningHere))
		if _, own := w.(ArgsSetter); !own {
			if err := k.options.Limited(layout.ParamSpecs()); err != nil {
				return nil, fmt.Errorf("registering %T: %w", w, err)
			}
		}
		if _, ok := layout.New().(Worker); !ok {
			return nil, fmt.Errorf("registering %T: %w: Run must be a method of *%s", w, job.ErrConfig, layout.Type())
		}
		k.ports, k.silent = job.PortsOf(w, layout), job.SilentOf(w)
		for _, s := range k.ports {
			if err := s.Validate(); err != nil {
				return nil, fmt.Errorf("registering %T: %w", w, err)
			}
		}
		if k.options.MaxRunsPerMinute != 0 {
			r.limits[name] = k.options.maxRuns()
		}
		k.limit(k.options.Limit())
		r.running = append(r.running, store.RunLimits(name, k.options.Limit())...)
		r.kinds[name] = k
		r.names = append(r.names, name)
	}
	slices.Sort(r.names)
	r.batches.Store(&map[string]int{})
	r.sealAsks()
	return r, nil
}

// limit has the types keep to the limits that were registered last, and to their own where none were, and returns all of them.
func (r *registry) limit(registered map[string]job.TypeLimit) (all []store.RunLimit) {
	for name, k := range r.kinds {
		l, ok := registered[name]
		if !ok {
			l = k.options.Limit()
		}
		k.limit(l)
		all = append(all, store.RunLimits(name, l)...)
	}
	return all
}

// limit notes what limits the runs of the type.
func (k *kind) limit(l job.TypeLimit) {
	k.limited.Store(l != job.TypeLimit{})
	k.rated.Store(l.Runs > 0)
}

// catalogue lists the types for each of the queues, for the store.
func (r *registry) catalogue(queues map[string]int) []job.TypeInfo {
	version := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		version = info.Main.Version
	}
	var out []job.TypeInfo
	for queue := range queues {
		for _, k := range r.kinds {
			info := job.TypeInfo{
				Type: k.name, Queue: queue, Ports: k.ports, Silent: k.silent, Engine: true, Version: version, Kinds: k.layout.Kinds(), Schemas: k.layout.Schemas(),
			}
			info.SetLimit(k.options.Limit())
			info.MaxRunsPerMinute, info.Tries, info.Timeout = max(k.options.MaxRunsPerMinute, 0), k.options.Tries, k.options.Timeout
			if k.version > 1 {
				info.TypeVersion = k.version
			}
			if p, ok := k.worker.(job.Prioritizer); ok {
				info.Priority = new(p.RunPriority())
			}
			if _, own := k.worker.(ArgsSetter); !own {
				info.Params = k.layout.ParamSpecs()
			}
			out = append(out, info)
		}
	}
	return out
}

func (k *kind) setArgs(w any, args json.RawMessage) error {
	if s, ok := w.(ArgsSetter); ok && len(args) > 0 {
		return s.SetArgs(args)
	}
	return k.layout.SetParams(w, args)
}

// instance makes a worker for one run. The error is undecodable if the args cannot be decoded here.
func (k *kind) instance(i *job.Info, b port.Binder) (Worker, error) {
	w := k.layout.Copy(k.worker)
	args, err := k.args(i)
	if err != nil {
		return nil, &undecodable{error: err}
	}
	if err = k.setArgs(w, args); notDecoded(err) {
		return nil, &undecodable{error: err}
	}
	if err != nil {
		return nil, err
	}
	if err := k.layout.Bind(w, b); err != nil {
		return nil, err
	}
	return w.(Worker), nil //nolint:forcetypeassert // checked by newRegistry
}
