package conformance_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// operations are all that a handle can do, by name.
func (e *env) operations(h, other *job.Handle) map[string]func() error {
	second := func(_ any, err error) error { return err }
	return map[string]func() error{
		"Info":         func() error { return second(h.Info(e.ctx)) },
		"Tree":         func() error { return second(h.Tree(e.ctx)) },
		"State":        func() error { return second(h.State(e.ctx)) },
		"State(key)":   func() error { return second(h.State(e.ctx, "k")) },
		"Failures":     func() error { return second(h.Failures(e.ctx)) },
		"Logs":         func() error { return second(h.Logs(e.ctx, 10)) },
		"Runs":         func() error { return second(h.Runs(e.ctx, 10)) },
		"Trace":        func() error { return second(h.Trace(e.ctx, port.Input, "in", 0)) },
		"Write":        func() error { return h.Write(e.ctx, "in", 1) },
		"WriteOut":     func() error { return h.WriteOut(e.ctx, "out", 1) },
		"Close":        func() error { return h.Close(e.ctx, "in") },
		"Peek":         func() error { return second(h.Peek(e.ctx, "out", 1)) },
		"Read":         func() error { var v any; return second(h.Read(e.ctx, "out", &v)) },
		"ReadIn":       func() error { var v any; return second(h.ReadIn(e.ctx, "in", &v)) },
		"Drain":        func() error { return second(h.Drain(e.ctx, port.Input, "in")) },
		"Run":          func() error { return h.Run(e.ctx) },
		"Retry":        func() error { return h.Retry(e.ctx) },
		"Force":        func() error { return h.Force(e.ctx) },
		"RetryFailed":  func() error { return second(h.RetryFailed(e.ctx)) },
		"Wait":         func() error { return second(h.Wait(e.ctx)) },
		"Children":     func() error { return second(h.Children(e.ctx)) },
		"Child":        func() error { return second(h.Child(e.ctx, "a")) },
		"Parent":       func() error { return second(h.Parent(e.ctx)) },
		"RunParent":    func() error { return h.RunParent(e.ctx) },
		"Adopt":        func() error { return h.Adopt(e.ctx, other, "x") },
		"be adopted":   func() error { return other.Adopt(e.ctx, h, "x") },
		"Disown":       func() error { return h.Disown(e.ctx, "a") },
		"DisownChild":  func() error { return h.DisownChild(e.ctx, other) },
		"be disowned":  func() error { return other.DisownChild(e.ctx, h) },
		"Terminate":    func() error { return h.Terminate(e.ctx) },
		"TerminateAll": func() error { return h.TerminateAll(e.ctx) },
		"Ended":        func() error { return second(h.Ended(e.ctx)) },
		"Delete":       func() error { return h.Delete(e.ctx) },
		"RunAt":        func() error { return h.RunAt(e.ctx, time.Now()) },
		"RunAfter":     func() error { return h.RunAfter(e.ctx, time.Second) },
		"SetState":     func() error { return h.SetState(e.ctx, map[string]any{"k": 1}) },
		"UnsetState":   func() error { return h.UnsetState(e.ctx, "k") },
		"Lock":         func() error { return second(h.Lock(e.ctx, time.Second, 0)) },
		"AddAlias":     func() error { return h.AddAlias(e.ctx, "again") },
		"RemoveAlias":  func() error { return h.RemoveAlias(e.ctx, "stale") },
		"Aliases":      func() error { return second(h.Aliases(e.ctx)) },
		"SetPorts":     func() error { return h.SetPorts(e.ctx, nil) },
		"SetDefault":   func() error { return h.SetDefault(e.ctx, port.Input, "in", 1) },
		"ClearDefault": func() error { return h.ClearDefault(e.ctx, port.Input, "in") },
		"Connect":      func() error { return second(h.Connect(e.ctx, port.Output, "out", h.Ref(port.Input, "in"))) },
		"create below": func() error {
			return second(e.client.Create(e.ctx, job.New{Type: "Do", Parent: h.ID(), Name: "new"}))
		},
	}
}

func TestF1Find(t *testing.T) {
	each(t, func(e *env) {
		e.serve(&Do{})
		h := e.create(job.New{Type: "Do", Args: nothing(e.T), Alias: "mine"})
		child := e.child(h, "c", "Do", nothing(e.T))
		e.check(h.AddAlias(e.ctx, "stale"))
		for name, want := range map[string]*job.Handle{
			string(h.ID()): h, "mine": h, "stale": h, string(h.ID()[:13]): h, string(child.ID()): child,
		} {
			got, err := e.client.Find(e.ctx, name)
			e.check(err)
			if !got.Equal(want) {
				e.Errorf("%q finds %s", name, got.ID())
			}
		}
		missing, err := job.NewID()
		e.check(err)
		nobody := []string{string(missing), string(h.ID()) + ".99", "unknown", "", " ", "*", "a b", "\x00", strings.Repeat("x", 5000)}
		for _, name := range nobody {
			_, err := e.client.Find(e.ctx, name)
			e.refused(err, job.ErrNotFound)
		}
		other := e.job("Do", nothing(e.T))
		e.ended(h)
		e.check(h.Delete(e.ctx))
		for _, name := range []string{string(h.ID()), "mine", "stale", string(child.ID())} {
			e.until(name+" is gone", func() bool { _, err := e.client.Find(e.ctx, name); return err != nil })
			_, err := e.client.Find(e.ctx, name)
			e.refused(err, job.ErrNotFound)
		}
		if ok, err := h.Exists(e.ctx); ok || err != nil {
			e.Errorf("the deleted job exists: %v, %v", ok, err)
		}
		e.unchanged(func() {
			for _, gone := range []*job.Handle{h, child} {
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
		e.check(h.AddAlias(e.ctx, "a1"))
		e.check(h.AddAlias(e.ctx, "B-2"))
		for _, bad := range []string{"", "1a", "_a", "-a", ".a", "ä", "a b", " a", "/a"} {
			e.refused(h.AddAlias(e.ctx, bad), job.ErrName)
		}
		e.unchanged(func() { e.check(h.AddAlias(e.ctx, "a1")) })
		err := other.AddAlias(e.ctx, "a1")
		e.refused(err, job.ErrExists)
		if !strings.Contains(err.Error(), string(h.ID())) {
			e.Errorf("the error does not name the holder %s: %v", h.ID(), err)
		}
		_, err = e.client.Create(e.ctx, job.New{Type: "Do", Alias: "a1"})
		e.refused(err, job.ErrExists)
		if !strings.Contains(err.Error(), string(h.ID())) {
			e.Errorf("the error does not name the holder %s: %v", h.ID(), err)
		}
		e.refused(h.RemoveAlias(e.ctx, "a2"), job.ErrNotFound)
		e.refused(other.RemoveAlias(e.ctx, "a1"), job.ErrNotFound)
		got, err := h.Aliases(e.ctx)
		e.check(err)
		if !slices.Equal(got, []string{"B-2", "a1"}) {
			e.Errorf("aliases %q", got)
		}
		e.check(h.RemoveAlias(e.ctx, "a1"))
		e.refused(h.RemoveAlias(e.ctx, "a1"), job.ErrNotFound)
		e.check(other.AddAlias(e.ctx, "a1"))
		found, err := e.client.Find(e.ctx, "a1")
		e.check(err)
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
		again, err := e.client.Find(e.ctx, "me")
		e.check(err)
		up, err := c.Parent(e.ctx)
		e.check(err)
		seen := map[job.ID]int{}
		for _, same := range []*job.Handle{h, again, up} {
			if !same.Equal(h) || !h.Equal(same) || same.Equal(c) || same.Equal(nil) {
				e.Errorf("handle of %s is not equal to that of %s only", same.ID(), h.ID())
			}
			seen[same.ID()]++
		}
		if len(seen) != 1 || seen[h.ID()] != 3 {
			e.Errorf("as keys: %v", seen)
		}
		text, err := json.Marshal(h.ID())
		e.check(err)
		var back job.ID
		e.check(json.Unmarshal(text, &back))
		if seen[back] != 3 {
			e.Errorf("%s is not found by its ID %s read back", h.ID(), text)
		}
	})
}
