package graph_test

import (
	"context"
	"fmt"
	"strconv"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/redisstore/embedded"
	"github.com/weirworks/weir/worker"
)

// Ticket is a worker whose next version takes texts where this one takes numbers.
type Ticket struct {
	In port.In[int]
}

func (*Ticket) Run(context.Context, *worker.Run) error { return nil }

// TicketV2 is that version. In its own program it would be called Ticket, too.
type TicketV2 struct {
	In port.In[string]
}

func (*TicketV2) JobType() string                        { return "Ticket" }
func (*TicketV2) Run(context.Context, *worker.Run) error { return nil }

// A patch that changes the Go type of a port converts what waits there, or is refused.
func ExampleGraph_convert() {
	ctx := context.Background()
	store, err := redisstore.Open(ctx, redisstore.Config{Embedded: embedded.Start}) // an embedded Redis
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = store.Close() }()

	desk := graph.New("desk")
	graph.Connect(graph.Input[int](desk, "in"), graph.Add(desk, "ticket", &Ticket{}).In)
	h, err := client.New(store).Start(ctx, desk)
	if err == nil {
		err = h.Write(ctx, "in", 41, 42)
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	next := graph.New("desk")
	graph.Connect(graph.Input[string](next, "in"), graph.Add(next, "ticket", &TicketV2{}).In)
	fmt.Println(h.Patch(ctx, next))
	fmt.Println(h.Patch(ctx, next, client.Convert("ticket", "in", func(n int) (string, error) { return "T-" + strconv.Itoa(n), nil })))
	tree, err := h.Tree(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	waiting, _, err := store.Page(ctx, tree[1].ID, port.Input, "in", 0, 10, 1000)
	for _, stored := range waiting {
		text, _ := port.Split(stored)
		fmt.Printf("%s ", text)
	}
	fmt.Println(err)
	// Output:
	// not possible in the job's status: port "in" of job "ticket" holds 2 messages of Go type int, and is to have string: let them be read first, or convert them with client.Convert
	// <nil>
	// "T-41" "T-42" <nil>
}
