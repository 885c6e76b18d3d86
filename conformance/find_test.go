package conformance_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// operations are all that a handle can do, by name.
func (e *env) operations(h, other *client.Handle) map[string]func() error {
	second := func(_ any, err error) error { return err }
	return map[string]func() error{
		"Info":         func() error { return second(h.Info(e.Ctx)) },
		"Tree":         func() error { return second(h.Tree(e.Ctx)) },
		"State":        func() error { return second(h.State(e.Ctx)) },
		"State(key)":   func() error { return second(h.State(e.Ctx, "k")) },
		"Failures":     func() error { return second(h.Failures(e.Ctx)) },
		"Logs":         func() error { return second(h.Logs(e.Ctx, 10)) },
		"Runs":         func() error { return second(h.Runs(e.Ctx, 10)) },
		"Trace":        func() error { return second(h.Trace(e.Ctx, port.Input, "in", 0)) },
		"Write":        func() error { return h.Write(e.Ctx, "in", 1) },
		"WriteOut":     func() error { return h.WriteOut(e.Ctx, "out", 1) },
		"Close":        func() error { return h.Close(e.Ctx, "in") },
		"Peek":         func() error { return second(h.Peek(e.Ctx, "out", 1)) },
		"Read":         func() error { var v any; return second(h.Read(e.Ctx, "out", &v)) },
		"ReadIn":       func() error { var v any; return second(h.ReadIn(e.Ctx, "in", &v)) },
		"Drain":        func() error { return second(h.Drain(e.Ctx, port.Input, "in")) },
		"Run":          func() error { return h.Run(e.Ctx) },
		"Retry":        func() error { return h.Retry(e.Ctx) },
		"Force":        func() error { return h.Force(e.Ctx) },
		"RetryFailed":  func() error { return second(h.RetryFailed(e.Ctx)) },
		"Wait":         func() error { return second(h.Wait(e.Ctx)) },
		"Children":     func() error { return second(h.Children(e.Ctx)) },
		"Child":        func() error { return second(h.Child(e.Ctx, "a")) },
		"Parent":       func() error { return second(h.Parent(e.Ctx)) },
		"RunParent":    func() error { return h.RunParent(e.Ctx) },
		"Adopt":        func() error { return h.Adopt(e.Ctx, other, "x") },
		"be adopted":   func() error { return other.Adopt(e.Ctx, h, "x") },
		"Disown":       func() error { return h.Disown(e.Ctx, "a") },
		"DisownChild":  func() error { return h.DisownChild(e.Ctx, other) },
		"be disowned":  func() error { return other.DisownChild(e.Ctx, h) },
		"Terminate":    func() error { return h.Terminate(e.Ctx) },
		"TerminateAll": func() error { return h.TerminateAll(e.Ctx) },
		"Ended":        func() error { return second(h.Ended(e.Ctx)) },
		"Delete":       func() error { return h.Delete(e.Ctx) },
		"RunAt":        func() error { return h.RunAt(e.Ctx, time.Now()) },
		"RunAfter":     func() error { return h.RunAfter(e.Ctx, time.Second) },
		"SetState":     func() error { return h.SetState(e.Ctx, map[string]any{"k": 1}) },
		"UnsetState":   func() error { return h.UnsetState(e.Ctx, "k") },
		"Lock":         func() error { return second(h.Lock(e.Ctx, time.Second, 0)) },
		"AddAlias":     func() error { return h.AddAlias(e.Ctx, "again") },
		"RemoveAlias":  func() error { return h.RemoveAlias(e.Ctx, "stale") },
		"Aliases":      func() error { return second(h.Aliases(e.Ctx)) },
		"SetPorts":     func() error { return h.SetPorts(e.Ctx, nil) },
		"SetDefault":   func() error { return h.SetDefault(e.Ctx, port.Input, "in", 1) },
		"ClearDefault": func() error { return h.ClearDefault(e.Ctx, port.Input, "in") },
		"Connect":      func() error { return second(h.Connect(e.Ctx, port.Output, "out", h.Ref(port.Input, "in"))) },
		"create below": func() error {
			return second(e.Client.Create(e.Ctx, job.New{Type: "Do", Parent: h.ID(), Name: "new"}))
		},
	}
}

func TestF1Find(t *testing.T) {
	each(t, func(e *env) {
		e.serve(&Do{})
		h := e.create(job.New{Type: "Do", Args: nothing(e.T), Alias: "mine"})
		child := e.child(h, "c", "Do", nothing(e.T))
		e.Check(h.AddAlias(e.Ctx, "stale"))
		for name, want := range map[string]*client.Handle{
			string(h.ID()): h, "mine": h, "stale": h, string(h.ID()[:13]): h, string(child.ID()): child,
		} {
			got, err := e.Client.Find(e.Ctx, name)
			e.Check(err)
			if !got.Equal(want) {
				e.Errorf("%q finds %s", name, got.ID())
			}
		}
		missing, err := job.NewID()
		e.Check(err)
		nobody := []string{string(missing), string(h.ID()) + ".99", "unknown", "", " ", "*", "a b", "\x00", strings.Repeat("x", 5000)}
		for _, name := range nobody {
			_, err := e.Client.Find(e.Ctx, name)
			e.refused(err, job.ErrNotFound)
		}
		other := e.job("Do", nothing(e.T))
		e.ended(h)
		e.Check(h.Delete(e.Ctx))
		for _, name := range []string{string(h.ID()), "mine", "stale", string(child.ID())} {
			e.Until(name+" is gone", func() bool { _, err := e.Client.Find(e.Ctx, name); return err != nil })
			_, err := e.Client.Find(e.Ctx, name)
			e.refused(err, job.ErrNotFound)
		}
		if ok, err := h.Exists(e.Ctx); ok || err != nil {
			e.Errorf("the deleted job exists: %v, %v", ok, err)
		}
		e.unchanged(func() {
			for _, gone := range []*client.Handle{h, child} {
				for name, op := range e.operations(gone, other) {
					e.stale(name, op())
				}
			}
		})
		e.names(other)
	})
}

func (e *env) stale(operation string, err error) {
	e.Helper()
	if err == nil || !strings.Contains(err.Error(), job.ErrNotFound.Error()) {
		e.Errorf("%s of a deleted job: %v", operation, err)
		return
	}
	e.refused(err, job.ErrNotFound)
}

func TestF2Aliases(t *testing.T) {
	each(t, func(e *env) {
		e.register(&Do{})
		h, other := e.job("Do", nothing(e.T)), e.job("Do", nothing(e.T))
		e.Check(h.AddAlias(e.Ctx, "a1"))
		e.Check(h.AddAlias(e.Ctx, "B-2"))
		for _, bad := range []string{"", "1a", "_a", "-a", ".a", "ä", "a b", " a", "/a"} {
			e.refused(h.AddAlias(e.Ctx, bad), job.ErrName)
		}
		e.unchanged(func() { e.Check(h.AddAlias(e.Ctx, "a1")) })
		err := other.AddAlias(e.Ctx, "a1")
		e.refused(err, job.ErrExists)
		if !strings.Contains(err.Error(), string(h.ID())) {
			e.Errorf("the error does not name the holder %s: %v", h.ID(), err)
		}
		_, err = e.Client.Create(e.Ctx, job.New{Type: "Do", Alias: "a1"})
		e.refused(err, job.ErrExists)
		if !strings.Contains(err.Error(), string(h.ID())) {
			e.Errorf("the error does not name the holder %s: %v", h.ID(), err)
		}
		e.refused(h.RemoveAlias(e.Ctx, "a2"), job.ErrNotFound)
		e.refused(other.RemoveAlias(e.Ctx, "a1"), job.ErrNotFound)
		got, err := h.Aliases(e.Ctx)
		e.Check(err)
		if !slices.Equal(got, []string{"B-2", "a1"}) {
			e.Errorf("aliases %q", got)
		}
		e.Check(h.RemoveAlias(e.Ctx, "a1"))
		e.refused(h.RemoveAlias(e.Ctx, "a1"), job.ErrNotFound)
		e.Check(other.AddAlias(e.Ctx, "a1"))
		found, err := e.Client.Find(e.Ctx, "a1")
		e.Check(err)
		if !found.Equal(other) {
			e.Errorf("a1 finds %s, want %s", found.ID(), other.ID())
		}
	})
}

func TestF3OneIdentity(t *testing.T) {
	each(t, func(e *env) {
		e.register(&Do{})
		h := e.create(job.New{Type: "Do", Args: nothing(e.T), Alias: "me"})
		c := e.child(h, "c", "Do", nothing(e.T))
		again, err := e.Client.Find(e.Ctx, "me")
		e.Check(err)
		up, err := c.Parent(e.Ctx)
		e.Check(err)
		seen := map[job.ID]int{}
		for _, same := range []*client.Handle{h, again, up} {
			if !same.Equal(h) || !h.Equal(same) || same.Equal(c) || same.Equal(nil) {
				e.Errorf("handle of %s is not equal to that of %s only", same.ID(), h.ID())
			}
			seen[same.ID()]++
		}
		if len(seen) != 1 || seen[h.ID()] != 3 {
			e.Errorf("as keys: %v", seen)
		}
		text, err := json.Marshal(h.ID())
		e.Check(err)
		var back job.ID
		e.Check(json.Unmarshal(text, &back))
		if seen[back] != 3 {
			e.Errorf("%s is not found by its ID %s read back", h.ID(), text)
		}
	})
}
