package worker_test

import (
	"context"
	"log"
	"sync"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/redisstore/embedded"
	"github.com/weirworks/weir/worker"
)

// onEmbedded runs workers on a Redis of their own inside this process, as the package's
// first example does. stop ends everything.
func onEmbedded(workers ...worker.Worker) (ctx context.Context, c *client.Client, stop func()) {
	ctx, cancel := context.WithTimeout(context.Background(), enginetest.Patience)
	store, err := redisstore.Open(ctx, redisstore.Config{Embedded: embedded.Start})
	if err != nil {
		log.Fatal(err)
	}
	engine, err := worker.New(worker.Config{Store: store, Workers: workers})
	if err != nil {
		log.Fatal(err)
	}
	serving, end := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		if err := engine.Run(serving); err != nil {
			log.Print(err)
		}
	})
	return ctx, client.New(store), func() {
		end()
		running.Wait()
		_ = store.Close()
		cancel()
	}
}
