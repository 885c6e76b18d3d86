package worker_test

import (
	"context"
	"fmt"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/redisstore/embedded"
	"github.com/weirworks/weir/worker"
)

// Numbers writes the numbers from 1 to UpTo.
type Numbers struct {
	UpTo int
	Out  port.Out[int]
}

func (n *Numbers) Run(context.Context, *worker.Run) error {
	for i := 1; i <= n.UpTo; i++ {
		if err := n.Out.Write(i); err != nil {
			return err
		}
	}
	return nil
}

// Square writes the square of each number it reads.
type Square struct {
	In  port.In[int]
	Out port.Out[int]
}

func (s *Square) Run(context.Context, *worker.Run) error {
	for n, err := range s.In.All() {
		if err != nil {
			return err
		}
		if err := s.Out.Write(n * n); err != nil {
			return err
		}
	}
	return nil
}

// Two workers are wired into a graph and run in this process. No Redis is needed: one
// runs inside the program.
func Example() {
	if err := squares(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output: [1 4 9 16]
}

func squares(ctx context.Context) error {
	store, err := redisstore.Open(ctx, redisstore.Config{Embedded: embedded.Start})
	if err != nil {
		return err
	}
	defer store.Close()

	engine, err := worker.New(worker.Config{Store: store, Workers: []worker.Worker{&Numbers{}, &Square{}}})
	if err != nil {
		return err
	}
	g := graph.New("squares")
	numbers := graph.Add(g, "numbers", &Numbers{UpTo: 4})
	square := graph.Add(g, "square", &Square{})
	graph.Connect(numbers.Out, square.In)
	graph.Export(g, "squares", square.Out)

	return engine.RunWhile(ctx, func(ctx context.Context) error {
		tree, err := client.New(store).Start(ctx, g)
		if err != nil {
			return err
		}
		if _, err := tree.Wait(ctx); err != nil {
			return err
		}
		messages, err := tree.Peek(ctx, "squares", 10)
		fmt.Printf("%s\n", messages)
		return err
	})
}
