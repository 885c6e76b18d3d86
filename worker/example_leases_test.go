package worker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/redisstore/embedded"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/worker"
)

// A client that is no engine takes a job, and commits what its own code made of it.
func ExampleLeases() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s, err := redisstore.Open(ctx, redisstore.Config{Embedded: embedded.Start}) // an embedded Redis
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	leases, err := worker.NewLeases(worker.LeaseConfig{Store: s, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		fmt.Println(err)
		return
	}
	serving, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- leases.Run(serving) }()
	defer func() {
		stop()
		<-done
	}()

	h, err := client.New(s).Start(ctx, job.Single(&Double{}, ""))
	if err == nil {
		err = h.Write(ctx, "in", 21)
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	runs, err := leases.Take(ctx, worker.LeaseRequest{Types: []string{"Dou*"}, Wait: 30 * time.Second})
	if err != nil {
		fmt.Println(err)
		return
	}
	run := runs[0]
	in := run.In.Of("in")
	fmt.Printf("run %s on %s\n", run.Info.Type, in.Items)
	_, err = s.Commit(ctx, []store.Tx{{Deltas: []store.Delta{{
		Job: run.Info.ID, Token: run.Token, Outcome: statemachine.Complete,
		Takes:  []store.Take{{Dir: port.Input, Port: "in", Head: in.Head, N: len(in.Items)}},
		Writes: []store.Write{{Dir: port.Output, Port: "out", Items: []json.RawMessage{json.RawMessage("42")}}},
	}}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	var out int
	_, err = h.Read(ctx, "out", &out)
	fmt.Println(out, err)
	// Output:
	// run Double on [21]
	// 42 <nil>
}
