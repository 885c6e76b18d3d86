package worker_test

import (
	"os"
	"slices"
	"testing"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/worker"
)

// TestMain runs the tests, or is a worker process of one of them.
func TestMain(m *testing.M) {
	worker.ShortRun(shortRun)
	worker.StrayDelay(time.Second)
	if os.Getenv(processEnv) != "" {
		processMain()
		return
	}
	os.Exit(redistest.Main(m))
}

// shortRun is how long runs may take that fuse: more than any takes on a slow machine that
// is not meant to.
const shortRun = 200 * time.Millisecond

// bench is a namespace of its own for one test. A copy with another store is another process.
type bench struct{ enginetest.Env }

// each runs fn on every kind of Redis.
func each(t *testing.T, fn func(b *bench)) {
	t.Helper()
	enginetest.Each(t, func(e *enginetest.Env) { fn(&bench{*e}) })
}

// onRedis returns a bench on the shared redis-server.
func onRedis(t *testing.T) *bench {
	t.Helper()
	return &bench{*enginetest.Shared(t)}
}

func newBench(t *testing.T, url string) *bench {
	t.Helper()
	return newBenchOf(t, url, 4)
}

// newBenchOf returns a bench of that many shards. With one, commits often go in groups.
func newBenchOf(t *testing.T, url string, shards int) *bench {
	t.Helper()
	return &bench{*enginetest.New(t, redisstore.Config{URL: url, Shards: shards})}
}

// everything is one of each type of worker of this suite.
func everything() []worker.Worker {
	return []worker.Worker{
		&Call{}, &Tried{}, &Timed{}, &Patient{}, &Ending{}, &Count{}, &Double{}, &Sum{}, &Fib{}, &SumFlow{}, &Summing{}, &Feed{}, &Hop{}, &Idle{},
	}
}

// serve starts an engine with all workers of the suite, changed by the options.
func (b *bench) serve(options ...func(*worker.Config)) *enginetest.Engine {
	b.Helper()
	cfg := b.Config(everything()...)
	for _, o := range options {
		o(&cfg)
	}
	return b.Serve(cfg)
}

// single starts one job.
func (b *bench) single(w any) *client.Handle {
	b.Helper()
	return b.Start(job.Single(w, ""))
}

// same fails the test unless the port "out" holds just these numbers.
func (b *bench) same(h *client.Handle, want ...int) {
	b.Helper()
	if got := enginetest.Outs[int](b, h, "out"); !slices.Equal(got, want) {
		b.Errorf("port out holds %v, want %v", got, want)
	}
}
