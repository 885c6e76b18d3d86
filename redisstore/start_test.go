package redisstore_test

import (
	"context"
	"strconv"
	"testing"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/worker"
)

type source struct {
	Item string
	Out  port.Out[string]
}

type relay struct {
	In  port.In[string]
	Out port.Out[string]
}

type drain struct{ In port.In[string] }

func (*source) Run(context.Context, *worker.Run) error { return nil }
func (*relay) Run(context.Context, *worker.Run) error  { return nil }
func (*drain) Run(context.Context, *worker.Run) error  { return nil }

// line is a graph of three workers, the first of which has a parameter.
func line(item string) *graph.Graph {
	g := graph.New("line")
	a := graph.Add(g, "a", &source{Item: item})
	b := graph.Add(g, "b", &relay{})
	c := graph.Add(g, "c", &drain{})
	graph.Connect(a.Out, b.In)
	graph.Connect(b.Out, c.In)
	return g
}

// BenchmarkStart builds and starts one graph after the other; its first part does all that needs no server.
func BenchmarkStart(b *testing.B) {
	b.Run("plan", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			plan, err := line("item " + strconv.Itoa(i)).Plan()
			if err == nil {
				err = plan.Validate()
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("redis", func(b *testing.B) {
		s := enginetest.Open(b, redisstore.Config{URL: redistest.SharedRedis(b), Namespace: redistest.Namespace(b)})
		c := client.New(s)
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if _, err := c.Start(b.Context(), line("item "+strconv.Itoa(i))); err != nil {
				b.Fatal(err)
			}
		}
	})
}
