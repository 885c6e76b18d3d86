package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/redisstore/embedded"
	"github.com/weirworks/weir/worker"
)

// Fee is version 1 of a worker, as the program that is running has it: it adds a fee in euros to prices, and counts them.
type Fee struct {
	Euros int
	In    port.In[int]
	Out   port.Out[string]
}

func (w *Fee) Run(_ context.Context, run *worker.Run) error {
	var count int
	_, err := run.State().Get("count", &count)
	for price, more := range w.In.All() {
		count++
		err = errors.Join(err, more, w.Out.Write(fmt.Sprintf("%d: %d euros", count, price+w.Euros)))
	}
	return errors.Join(err, run.State().Set("count", count))
}

// FeeV2 is the same worker in the next program, where it would be called Fee, too: its fee is in cents, and its state has
// another form.
type FeeV2 struct {
	Cents int
	In    port.In[int]
	Out   port.Out[string]
}

// JobType makes it a version of Fee.
func (*FeeV2) JobType() string { return "Fee" }

// Version implements job.Versioned.
func (*FeeV2) Version() int { return 2 }

// UpgradeArgs implements worker.ArgsUpgrader.
func (*FeeV2) UpgradeArgs(_ int, args json.RawMessage) (json.RawMessage, error) {
	var old struct{ Euros int }
	if err := json.Unmarshal(args, &old); err != nil {
		return nil, err
	}
	return json.Marshal(map[string]int{"Cents": 100 * old.Euros})
}

// UpgradeState implements worker.StateUpgrader.
func (*FeeV2) UpgradeState(_ int, state map[string]json.RawMessage) error {
	state["totals"] = json.RawMessage(fmt.Sprintf(`{"prices":%s}`, state["count"]))
	delete(state, "count")
	return nil
}

func (w *FeeV2) Run(_ context.Context, run *worker.Run) error {
	var totals struct {
		Prices int `json:"prices"`
	}
	_, err := run.State().Get("totals", &totals)
	for price, more := range w.In.All() {
		totals.Prices++
		err = errors.Join(err, more, w.Out.Write(fmt.Sprintf("%d: %d cents", totals.Prices, 100*price+w.Cents)))
	}
	return errors.Join(err, run.State().Set("totals", totals))
}

// serving runs fn while an engine with one type of worker serves a store.
func serving(ctx context.Context, store *redisstore.Store, w worker.Worker, fn func(ctx context.Context) error) {
	engine, err := worker.New(worker.Config{Store: store, Workers: []worker.Worker{w}})
	if err == nil {
		err = engine.RunWhile(ctx, fn)
	}
	if err != nil {
		fmt.Println(err)
	}
}

// A newer version of a worker goes on with a job that an older one began.
func ExampleStateUpgrader() {
	ctx := context.Background()
	store, err := redisstore.Open(ctx, redisstore.Config{Embedded: embedded.Start}) // an embedded Redis
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = store.Close() }()
	client := client.New(store)
	fee, err := client.Start(ctx, job.Single(&Fee{Euros: 2}, ""))
	if err != nil {
		fmt.Println(err)
		return
	}
	pay := func(ctx context.Context) error {
		err := fee.Write(ctx, "in", 10)
		_, wait := fee.Wait(ctx)
		state, read := fee.State(ctx)
		fmt.Printf("%s\n", state)
		return errors.Join(err, wait, read)
	}
	serving(ctx, store, &Fee{}, pay)
	serving(ctx, store, &FeeV2{}, pay)
	all, err := fee.Peek(ctx, "out", 10)
	fmt.Printf("%s %v\n", all, err)
	// Output:
	// map[count:1]
	// map[totals:{"prices":2}]
	// ["1: 12 euros" "2: 1200 cents"] <nil>
}
