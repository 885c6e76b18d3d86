package graph_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/weirtest"
	"github.com/weirworks/weir/worker"
)

// Two programs have the type length; messages of the newer one are texts.
type (
	lengthOld struct {
		In  port.In[int]
		Out port.Out[int]
	}
	lengthNew struct {
		In  port.In[string]
		Out port.Out[int]
	}
)

func (*lengthOld) JobType() string { return "length" }
func (*lengthNew) JobType() string { return "length" }

func (w *lengthOld) Run(context.Context, *worker.Run) error {
	for n, err := range w.In.All() {
		if err := errors.Join(err, w.Out.Write(n)); err != nil {
			return err
		}
	}
	return nil
}

func (w *lengthNew) Run(context.Context, *worker.Run) error {
	for s, err := range w.In.All() {
		if err := errors.Join(err, w.Out.Write(len(s))); err != nil {
			return err
		}
	}
	return nil
}

func lengths(old bool) *graph.Graph {
	g := graph.New("lengths")
	if old {
		w := graph.Add(g, "length", &lengthOld{})
		graph.Initial(w.In, 1, 22, 333)
		graph.Export(g, "out", w.Out)
		return g
	}
	w := graph.Add(g, "length", &lengthNew{})
	graph.Initial(w.In, "of the new graph alone")
	graph.Export(g, "out", w.Out)
	return g
}

// A patch that gives a port another Go type while messages wait there is refused, and changes nothing, unless it converts them.
func TestPatchRetypesPorts(t *testing.T) {
	t.Parallel()
	e := weirtest.New(t, &lengthNew{})
	h := e.Start(lengths(true))
	err := h.Patch(t.Context(), lengths(false))
	for _, part := range []string{`port "in"`, `job "length"`, "3 messages", "int", "string", "client.Convert"} {
		if err == nil || !errors.Is(err, job.ErrStatus) || !strings.Contains(err.Error(), part) {
			t.Fatalf("Patch = %v, want %s in it", err, part)
		}
	}
	bad := client.Convert("length", "in", func(n int) (string, error) {
		if n == 22 {
			return "", errors.New("not this one")
		}
		return "x", nil
	})
	if err := h.Patch(t.Context(), lengths(false), bad); err == nil || !strings.Contains(err.Error(), "message 2 of port") || !strings.Contains(err.Error(), "not this one") {
		t.Fatalf("Patch = %v", err)
	}
	for says, wrong := range map[string]client.PatchOption{
		"from float64 to string":           client.Convert("length", "in", func(float64) (string, error) { return "", nil }),
		"from int to bool":                 client.Convert("length", "in", func(int) (bool, error) { return true, nil }),
		`no job "lengths": did you mean`:   client.Convert("lengths", "in", func(int) (string, error) { return "", nil }),
		`no port "inn": did you mean "in"`: client.Convert("length", "inn", func(int) (string, error) { return "", nil }),
	} {
		if err := h.Patch(t.Context(), lengths(false), wrong); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("Patch = %v, want %s in it", err, says)
		}
	}
	d, err := h.Diff(t.Context(), lengths(false))
	if err != nil || len(d.Changed) != 1 || len(d.Changed[0].Fields) != 1 {
		t.Fatalf("Diff = %+v, %v, want one field of one job", d, err)
	}
	if f := d.Changed[0].Fields[0]; f.Field != "type of in in" || string(f.From) != `"int"` || string(f.To) != `"string"` {
		t.Errorf("Diff tells of %s from %s to %s", f.Field, f.From, f.To)
	}
	if err := h.Patch(t.Context(), lengths(false), client.Convert("length", "in", func(n int) (string, error) { return strconv.Itoa(n), nil })); err != nil {
		t.Fatal(err)
	}
	e.RunUntilIdle()
	wantOut(t, e, h, "out", 1, 2, 3)
	if err := h.Patch(t.Context(), lengths(true)); err != nil { // nothing waits now
		t.Fatal(err)
	}
}
