package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/worker"
)

// Versions of a message: the second has lines where the first has a text.
type (
	noteV1 struct{ Text string }
	noteV2 struct{ Lines []string }
)

func (noteV2) MessageVersion() int { return 2 }

func (*noteV2) UpgradeMessage(_ int, old json.RawMessage) (json.RawMessage, error) {
	var v1 noteV1
	if err := json.Unmarshal(old, &v1); err != nil {
		return nil, err
	}
	if v1.Text == "" {
		return nil, errors.New("a note of version 1 has a text")
	}
	return json.Marshal(noteV2{Lines: []string{v1.Text}})
}

// Two programs have the type notes, which reads them; and one that passes on anything.
type (
	notesV1 struct {
		In  port.In[noteV1]
		Out port.Out[string]
	}
	notesV2 struct {
		In  port.In[noteV2]
		Out port.Out[string]
	}
	echo struct {
		In  port.In[noteV2]
		Out port.Out[noteV2]
	}
	passOn struct {
		In  port.In[json.RawMessage]
		Out port.Out[json.RawMessage]
	}
)

func (*notesV1) JobType() string { return "notes" }
func (*notesV2) JobType() string { return "notes" }

func (w *notesV1) Run(context.Context, *worker.Run) error {
	for n, err := range w.In.All() {
		if err == nil { // else it skips what it cannot decode
			err = w.Out.Write("v1 " + n.Text)
		}
		if err != nil && !errors.Is(err, port.ErrNewer) {
			return err
		}
	}
	return nil
}

func (w *notesV2) Run(context.Context, *worker.Run) error {
	for n, err := range w.In.All() {
		if err := errors.Join(err, w.Out.Write("v2 "+strings.Join(n.Lines, "/"))); err != nil {
			return err
		}
	}
	return nil
}

func (w *echo) Run(context.Context, *worker.Run) error {
	for n, err := range w.In.All() {
		if err := errors.Join(err, w.Out.Write(n)); err != nil {
			return err
		}
	}
	return nil
}

func (w *passOn) Run(context.Context, *worker.Run) error {
	for raw, err := range w.In.All() {
		if err := errors.Join(err, w.Out.Write(raw)); err != nil {
			return err
		}
	}
	return nil
}

// A message of a newer version of its type waits, with its job, for engines that read it, also if the worker would skip it. Then
// the job is for all engines again. Older ones are upgraded as they are read.
func TestMessagesOfANewerVersionWait(t *testing.T) {
	each(t, func(b *bench) {
		old := b.serve(only(&notesV1{}, &Count{}))
		h := b.single(&notesV1{})
		b.Check(h.Write(b.Ctx, "in", noteV1{"a"}))
		b.Until("the first version reads its own", func() bool { return b.said(h) == "v1 a" })
		before := b.Completed(h, 1)
		b.Check(h.Write(b.Ctx, "in", noteV2{[]string{"b", "c"}}, noteV1{"d"}))
		b.Until("the job says what it waits for", func() bool {
			info := b.Info(h)
			return info.Status == statemachine.Queued && strings.Contains(info.Reason, "newer version: 2")
		})
		for range 20 {
			b.Completed(b.single(&Count{To: 1}), 1)
		}
		if info, err := h.Info(b.Ctx); err != nil || info.Steps != before.Steps || info.Version > before.Version+slots {
			b.Errorf("%d steps, %d commits, before %d and %d, %v", info.Steps, info.Version, before.Steps, before.Version, err)
		}
		fresh := b.serve(only(&notesV2{}))
		b.Until("the second version reads both", func() bool { return b.said(h) == "v2 d" })
		fresh.Stop()
		b.Check(h.Write(b.Ctx, "in", noteV1{"e"}))
		b.Until("the first version goes on", func() bool { return b.said(h) == "v1 e" })
		old.Stop()
		if all := enginetest.Outs[string](b, h, "out"); strings.Join(all, ",") != "v1 a,v2 b/c,v2 d,v1 e" {
			b.Errorf("it said %q", all)
		}
		if fs, err := h.Failures(b.Ctx); err != nil || len(fs) > 0 {
			b.Errorf("failures %v, %v", fs, err)
		}
	})
}

// The version goes with a message: along wires, through workers that take it as it is, by Initial, and to clients.
func TestMessageVersionsTravel(t *testing.T) {
	each(t, func(b *bench) {
		b.serve(only(&notesV2{}, &echo{}, &passOn{}))
		g := graph.New("travel")
		e, p, n := graph.Add(g, "echo", &echo{}), graph.Add(g, "pass", &passOn{}), graph.Add(g, "notes", &notesV2{})
		graph.Initial(e.In, noteV2{[]string{"x", "y"}})
		graph.ToJSON(e.Out, p.In)
		graph.FromJSON(p.Out, n.In)
		graph.Export(g, "out", n.Out)
		h := b.Start(g)
		b.Completed(h, 0)
		if got := b.said(h); got != "v2 x/y" {
			b.Errorf("it said %q", got)
		}
		one := b.single(&echo{})
		b.Check(one.Write(b.Ctx, "in", noteV1{"old"}, noteV2{[]string{"new"}}))
		b.Completed(one, 1)
		for _, want := range []string{"old", "new"} {
			got, ok, err := client.Receive[noteV2](b.Ctx, one, "out")
			if err != nil || !ok || len(got.Lines) != 1 || got.Lines[0] != want {
				b.Errorf("received %v, %t, %v, want %s", got, ok, err, want)
			}
		}
	})
}
