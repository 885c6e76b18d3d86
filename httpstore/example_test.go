package httpstore_test

import (
	"context"
	"fmt"
	"net/http/httptest"

	"github.com/weirworks/weir/api"
	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/httpstore"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/redisstore/embedded"
)

// A client behind a server works as one beside Redis does.
func Example() {
	if err := example(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output: 42
}

func example(ctx context.Context) error {
	jobs, err := redisstore.Open(ctx, redisstore.Config{Embedded: embedded.Start}) // in this process, for the example
	if err != nil {
		return err
	}
	defer jobs.Close()
	handler, err := api.New(api.Config{Store: jobs})
	if err != nil {
		return err
	}
	server := httptest.NewServer(handler)
	defer server.Close()

	store, err := httpstore.Open(ctx, httpstore.Config{URL: server.URL})
	if err != nil {
		return err
	}
	defer store.Close()
	client := client.New(store)
	if _, err := client.Start(ctx, job.Single(&Echo{}, ""), job.Alias("echo")); err != nil {
		return err
	}
	echo, err := client.Find(ctx, "echo")
	if err != nil {
		return err
	}
	if err := echo.Write(ctx, "in", 42); err != nil {
		return err
	}
	messages, err := echo.Messages(ctx, port.Input, "in", 10)
	if err != nil {
		return err
	}
	fmt.Println(string(messages[0].Data))
	return nil
}
