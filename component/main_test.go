package component_test

import (
	"context"
	"encoding/json"
	"flag"
	"maps"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/component"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/weirtest"
	"github.com/weirworks/weir/worker"
)

func TestMain(m *testing.M) {
	// The scripts of the embedded Redis take their time; ask for more with -rapid.checks.
	if err := flag.Set("rapid.checks", "20"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// stream is what comes in at a port, or goes out: JSON texts.
type stream map[string][]string

// raws turns JSON texts into messages.
func raws(texts []string) []any {
	var out []any
	for _, t := range texts {
		out = append(out, json.RawMessage(t))
	}
	return out
}

// outputs drains the given Out ports.
func outputs(t weirtest.TB, h *client.Handle, ports ...string) stream {
	got := stream{}
	for _, p := range ports {
		items, err := h.Drain(context.Background(), port.Output, p)
		if err != nil {
			t.Fatalf("draining %s: %v", p, err)
		}
		for _, raw := range items {
			got[p] = append(got[p], string(raw))
		}
	}
	return got
}

// outPorts names the Out ports of a job.
func outPorts(e *weirtest.Engine, h *client.Handle) []string {
	var names []string
	for _, p := range e.Info(h).Ports {
		if p.Dir.String() == "out" && p.Name != "*" {
			names = append(names, p.Name)
		}
	}
	return names
}

// play feeds all, closes the ports, and returns what came out and the error that the job
// failed with.
func play(t weirtest.TB, c worker.Worker, in stream) (out stream, failure string) {
	e := weirtest.New(t, c)
	h := e.StartWorker(c)
	for _, p := range slices.Sorted(maps.Keys(in)) {
		e.Feed(h, p, raws(in[p])...)
		e.CloseIn(h, p)
	}
	e.RunUntilIdle()
	if fs := e.Failures(h); len(fs) > 0 {
		failure = fs[0].Error
	} else if s := e.Status(h); s != statemachine.Completed {
		t.Fatalf("the job is %s", s)
	}
	return outputs(t, h, outPorts(e, h)...), failure
}

// example is a case of a table.
type example struct {
	name string
	c    component.Component
	in   stream
	out  stream
	fail string // part of the error
}

func (x example) test(t *testing.T) {
	t.Helper()
	t.Run(x.name, func(t *testing.T) {
		t.Parallel()
		got, failure := play(t, x.c, x.in)
		if x.fail != "" || failure != "" {
			if x.fail == "" || !strings.Contains(failure, x.fail) {
				t.Errorf("failed with %q, want %q", failure, x.fail)
			}
			return
		}
		if !same(got, x.out) {
			t.Errorf("got  %v\nwant %v", got, x.out)
		}
	})
}

func same(a, b stream) bool { return maps.EqualFunc(a, b, slices.Equal[[]string]) }

// list splits JSON texts at blanks.
func list(s string) []string { return strings.Fields(s) }
