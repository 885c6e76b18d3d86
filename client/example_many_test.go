package client_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/redisstore/embedded"
	"github.com/weirworks/weir/worker"
)

// Square writes one number.
type Square struct {
	Of  int
	Out port.Out[int]
}

// Run writes the number.
func (s *Square) Run(context.Context, *worker.Run) error { return s.Out.Write(s.Of * s.Of) }

// Many trees start in one round trip; what is wrong with one concerns no other one.
func ExampleClient_StartMany() {
	ctx := context.Background()
	store, err := redisstore.Open(ctx, redisstore.Config{Embedded: embedded.Start})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	c := client.New(store)
	var all []client.Starting
	for n := range 3 {
		all = append(all, client.Starting{
			Plan:    job.Single(&Square{Of: n}, ""),
			Options: []job.Option{job.Key(fmt.Sprint("square-", n))}, // a repetition starts nothing more
		})
	}
	all[1].Plan = nil
	started, err := c.StartMany(ctx, all)
	var some *client.ManyError
	if errors.As(err, &some) {
		fmt.Println(err)
	}
	for n, s := range started {
		fmt.Println(n, s.Err == nil)
	}
	// Output:
	// 1 of 3 trees were not started; the first is number 2: starting a tree: invalid name: there is no plan; give a graph or job.Single(worker)
	// 0 true
	// 1 false
	// 2 true
}
