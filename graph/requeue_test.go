package graph_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/weirtest"
)

// What a job of a graph could not handle goes back to the port it came from without its envelope, also from the port of
// the graph that the letters come out of, and with the context that it had.
func TestPoint6Requeue(t *testing.T) {
	t.Parallel()
	for _, exported := range []bool{false, true} {
		t.Run(fmt.Sprintf("exported=%v", exported), func(t *testing.T) {
			t.Parallel()
			g := graph.New("g")
			s := graph.Add(g, "s", &Step{By: 10, Hate: 3}, graph.OnFailure(job.DeadLetter))
			graph.WireInput(g, "in", "s.in")
			graph.Export(g, "out", s.Out)
			f := client.LetterFilter{}
			if exported {
				graph.Export(g, "rejected", graph.Errors(g, s))
			}
			e := weirtest.New(t, &Step{})
			h := e.Start(g)
			if f.Job = h.ID(); exported {
				f.Port = "rejected"
			}
			if err := h.Write(job.WithContext(t.Context(), port.Context{"tenant": "t7"}), "in", 1, 3, 5, 6); err != nil {
				t.Fatal(err)
			}
			e.RunUntilIdle()
			n, err := e.Client().RequeueAll(t.Context(), f, func(l *client.StoredLetter) bool {
				if l.Job != e.Child(h, "s").ID() || !strings.Contains(string(l.Contexts["in"]), `"tenant":"t7"`) {
					t.Errorf("a letter of job %s with the context %v", l.Job, l.Contexts["in"])
				}
				if string(l.Messages["in"]) == "6" {
					l.Messages["in"] = []byte("7")
				}
				return true
			})
			if n != 2 || err != nil {
				t.Fatalf("%d letters requeued: %v", n, err)
			}
			e.RunUntilIdle()
			if got := weirtest.Drain[int](e, h, "out"); !slices.Equal(got, []int{10, 50, 70}) {
				t.Errorf("got %v", got)
			}
			var left []string
			for l, err := range e.Client().DeadLetters(t.Context(), f) {
				if err != nil {
					t.Fatal(err)
				}
				left = append(left, l.Error)
			}
			if !slices.Equal(left, []string{"3 is not to be borne"}) {
				t.Errorf("letters left: %q", left)
			}
		})
	}
}
