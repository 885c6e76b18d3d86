package job_test

import (
	"context"
	"fmt"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/redisstore/embedded"
)

// Two jobs for one customer: the second waits until the first is over.
func ExampleSequentialKey() {
	ctx := context.Background()
	store, err := redisstore.Open(ctx, redisstore.Config{Embedded: embedded.Start})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	client := client.New(store)
	for n := range 2 {
		h, err := client.Start(ctx, job.Single(&Square{Of: n}, ""), job.SequentialKey("customer 7"))
		if err != nil {
			fmt.Println(err)
			return
		}
		info, err := h.Info(ctx)
		if err != nil {
			fmt.Println(err)
			return
		}
		turn, err := h.Turn(ctx)
		fmt.Println(info.Status, "with", turn.Before, "before it", err)
	}
	// Output:
	// queued with 0 before it <nil>
	// waiting with 1 before it <nil>
}
