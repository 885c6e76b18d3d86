package conformance_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/worker"
)

// Workers are made anew for each run, so what they do in a test is found by a key.
var (
	codes    sync.Map // key -> parts
	codeKeys atomic.Int64
)

type code func(ctx context.Context, run *worker.Run, w *Do) error

// parts are what a Do or a Life does; nil parts do nothing.
type parts struct{ start, run, shutdown code }

var errOver = errors.New("the test is over")

// Do is a worker without Start and Shutdown that runs code of its test.
type Do struct {
	Key string
	N   int `json:",omitempty"`
	In  port.In[int]
	Out port.Out[int]
}

// Run implements worker.Worker.
func (w *Do) Run(ctx context.Context, run *worker.Run) error {
	return w.act(ctx, run, func(p parts) code { return p.run })
}

func (w *Do) act(ctx context.Context, run *worker.Run, part func(parts) code) error {
	p, ok := codes.Load(w.Key)
	if !ok {
		return errOver
	}
	if fn := part(p.(parts)); fn != nil {
		return fn(ctx, run, w)
	}
	return nil
}

// Life is a Do with Start and Shutdown.
type Life struct{ Do }

// Start implements worker.Starter.
func (w *Life) Start(ctx context.Context, run *worker.Run) error {
	return w.act(ctx, run, func(p parts) code { return p.start })
}

// Shutdown implements worker.Shutdowner.
func (w *Life) Shutdown(ctx context.Context, run *worker.Run) error {
	return w.act(ctx, run, func(p parts) code { return p.shutdown })
}

// keep makes code known until the test ends and returns its key.
func keep(t testing.TB, p parts) string {
	t.Helper()
	key := strconv.FormatInt(codeKeys.Add(1), 10)
	codes.Store(key, p)
	t.Cleanup(func() { codes.Delete(key) })
	return key
}

// args are those of a Do or a Life, for job.New.
type args struct {
	Key string
	N   int `json:",omitempty"`
}

// does returns the args of a Do that runs code.
func does(t testing.TB, fn code) args {
	t.Helper()
	return args{Key: keep(t, parts{run: fn})}
}

// nothing returns the args of a Do or a Life that does nothing.
func nothing(t testing.TB) args { t.Helper(); return args{Key: keep(t, parts{})} }

// lives returns the args of a Life.
func lives(t testing.TB, p parts) args { t.Helper(); return args{Key: keep(t, p)} }
