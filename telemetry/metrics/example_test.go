package metrics_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/redisstore/embedded"
	"github.com/weirworks/weir/telemetry/metrics"
	"github.com/weirworks/weir/worker"
)

// A program serves its metrics at /metrics.
func ExampleNew() {
	ctx := context.Background()
	store, err := redisstore.Open(ctx, redisstore.Config{Embedded: embedded.Start})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	m := metrics.New(store)
	engine, err := worker.New(worker.Config{Store: store, Workers: []worker.Worker{&Double{}}, Hooks: []worker.Hooks{m}})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := engine.RunWhile(ctx, func(ctx context.Context) error {
		h, err := client.New(store).Start(ctx, doubles())
		if err == nil {
			err = h.Write(ctx, "in", 1, 2, 3)
		}
		if err == nil {
			err = h.Close(ctx, "in")
		}
		if err == nil {
			_, err = h.Wait(ctx)
		}
		return err
	}); err != nil {
		fmt.Println(err)
		return
	}

	answer := httptest.NewRecorder()
	m.Handler().ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	for line := range strings.Lines(answer.Body.String()) {
		if strings.HasPrefix(line, "weir_messages_read_total") {
			fmt.Print(line)
		}
	}
	// Output: weir_messages_read_total{namespace="main",type="Double"} 6
}
