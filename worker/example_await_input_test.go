package worker_test

import (
	"context"
	"fmt"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/redisstore/embedded"
	"github.com/weirworks/weir/worker"
)

// Tenfold writes its number, ten times as large.
type Tenfold struct {
	N   int
	Out port.Out[int]
}

// Run implements worker.Worker.
func (t *Tenfold) Run(context.Context, *worker.Run) error { return t.Out.Write(t.N * 10) }

// Asking has one child for each message that it reads, and writes what that returns. It runs for each message, for each child,
// and for the end of its input, in whatever order they come.
type Asking struct {
	In  port.In[int]
	Out port.Out[int]
}

// Run implements worker.Worker.
func (a *Asking) Run(_ context.Context, run *worker.Run) error {
	var asked, answered int // children that were spawned, and those whose result is written
	for key, n := range map[string]*int{"asked": &asked, "answered": &answered} {
		if _, err := run.State().Get(key, n); err != nil {
			return err
		}
	}
	if answered == asked { // nothing is awaited: the next message
		n, ok, err := a.In.Read()
		if err != nil || !ok {
			return err
		}
		if _, err := run.Spawn(fmt.Sprint("tenfold-", asked), job.Single(&Tenfold{N: n}, "")); err != nil {
			return err
		}
		asked++
		if err := run.State().Set("asked", asked); err != nil {
			return err
		}
	}
	result, err := worker.Await[int](run, fmt.Sprint("tenfold-", answered))
	if err != nil {
		return err
	}
	if err := a.Out.Write(result); err != nil {
		return err
	}
	return run.State().Set("answered", answered+1)
}

// A job that awaits a child and has an input runs again when that closes: it remembers what it has written.
func ExampleAwait_input() {
	ctx := context.Background()
	store, err := redisstore.Open(ctx, redisstore.Config{Embedded: embedded.Start})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	engine, err := worker.New(worker.Config{Store: store, Workers: []worker.Worker{&Asking{}, &Tenfold{}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = engine.RunWhile(ctx, func(ctx context.Context) error {
		asking, err := client.New(store).Start(ctx, job.Single(&Asking{}, ""))
		if err != nil {
			return err
		}
		if err := asking.Write(ctx, "in", 7); err != nil {
			return err
		}
		both := func(i *job.Info) bool {
			out, _ := i.Port(port.Output, "out")
			return out.Waiting > 0
		}
		if _, err := asking.WaitFor(ctx, both); err != nil {
			return err
		}
		if err := asking.Write(ctx, "in", 8); err != nil { // and only then the end of the input
			return err
		}
		if err := asking.Close(ctx, "in"); err != nil {
			return err
		}
		if _, err := asking.Wait(ctx); err != nil {
			return err
		}
		results, err := asking.Peek(ctx, "out", 10)
		fmt.Printf("%s\n", results)
		return err
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: [70 80]
}
