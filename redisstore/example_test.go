package redisstore_test

import (
	"context"
	"fmt"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/redisstore/embedded"
)

// Greeter is a worker; package worker says how its Run looks.
type Greeter struct {
	Names     port.In[string]
	Greetings port.Out[string]
}

// Without a URL the store is an embedded Redis that ends with the program.
func ExampleOpen() {
	ctx := context.Background()
	store, err := redisstore.Open(ctx, redisstore.Config{Embedded: embedded.Start})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()

	client := client.New(store)
	greeter, err := client.Start(ctx, job.Single(&Greeter{}, ""), job.Alias("greeter"))
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := greeter.Write(ctx, "names", "Ada", "Grace"); err != nil {
		fmt.Println(err)
		return
	}
	info, err := greeter.Info(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(info.Type, "is", info.Status)
	for _, p := range info.Ports {
		fmt.Println(p.Dir, p.Name, p.Waiting)
	}
	// Output:
	// Greeter is queued
	// in names 2
	// out greetings 0
}
