package client_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/redisstore/embedded"
)

// A job is failed by hand, and then retried with other parameters and a higher priority.
func ExampleHandle_Retry() {
	ctx := context.Background()
	store, err := redisstore.Open(ctx, redisstore.Config{Embedded: embedded.Start})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	// Engines register their types. This is for the check of new parameters.
	err = store.Register(ctx, []job.TypeInfo{{Type: "Square", Queue: job.DefaultQueue}})
	h, startErr := client.New(store).Start(ctx, job.Single(&Square{Of: 3}, ""))
	if err = errors.Join(err, startErr); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(h.Fail(ctx, "three is too few"))
	info, err := h.Info(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(info.Status, info.Reason)

	fmt.Println(h.Retry(ctx, client.RetryArgs(map[string]int{"Of": 4}), client.RetryPriority(900)))
	info, err = h.Info(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(info.Status, string(info.Args), *info.Priority)
	// Output:
	// <nil>
	// failed by hand: three is too few
	// <nil>
	// queued {"Of":4} 900
}
