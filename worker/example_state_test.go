package worker_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/worker"
)

// Account keeps a balance. Nothing but its state survives from one run to the next.
type Account struct {
	Deposits port.In[int]
}

func (a *Account) Run(_ context.Context, run *worker.Run) error {
	var balance int
	if _, err := run.State().Get("balance", &balance); err != nil {
		return err
	}
	for amount, err := range a.Deposits.All() {
		if err != nil {
			return err
		}
		balance += amount
	}
	return run.State().Set("balance", balance)
}

// The state changes when the run commits, together with what the run has read.
func ExampleState() {
	ctx, client, stop := onEmbedded(&Account{})
	defer stop()

	account, err := client.Start(ctx, job.Single(&Account{}, ""))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, amount := range []int{100, 20, 3} {
		err := account.Write(ctx, "deposits", amount)
		_, waitErr := account.Wait(ctx)
		state, stateErr := account.State(ctx)
		fmt.Printf("%s %v\n", state, errors.Join(err, waitErr, stateErr))
	}
	// Output:
	// map[balance:100] <nil>
	// map[balance:120] <nil>
	// map[balance:123] <nil>
}
