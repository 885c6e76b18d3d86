package worker_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/worker"
)

// Numbers that are written, by when and by whom.
const (
	beforeTheCut  = 0
	inNewHalf     = 1_000_000
	inOldHalf     = 2_000_000
	newAfterwards = 3_000_000
	oldAfterwards = 4_000_000
)

// splitBrain are two primaries of one namespace that do not know of each other, and who talks to each.
type splitBrain struct {
	first, second    *redistest.Server // the primary, and its replica that takes over
	oldSide, newSide *bench
	oldLine, newLine *redistest.Proxy
}

func inSplitBrain(t *testing.T) *splitBrain {
	t.Helper()
	h := &splitBrain{first: redistest.Start(t)}
	h.second = redistest.Start(t, append([]string{"--replicaof"}, strings.Split(h.first.Addr(), ":")...)...)
	h.oldLine, h.newLine = redistest.StartProxy(t, h.first.Addr()), redistest.StartProxy(t, h.first.Addr())
	h.newSide = newBench(t, h.newLine.URL())
	old := *h.newSide
	old.Store = old.Open(h.oldLine.URL())
	old.Client = client.New(old.Store)
	h.oldSide = &old
	h.linked(h.second)
	return h
}

// linked waits until a server is the replica of the other.
func (h *splitBrain) linked(s *redistest.Server) {
	b := h.newSide
	b.Helper()
	b.Until("the replica follows", func() bool {
		info, err := s.Client(b.T).Info(b.Ctx, "replication").Result()
		return err == nil && strings.Contains(info, "master_link_status:up")
	})
}

// cut makes the replica a primary, when it has all that was written so far, and half of the clients talk to it.
func (h *splitBrain) cut() {
	b := h.newSide
	b.Helper()
	c := h.first.Client(b.T).Conn()
	defer c.Close()
	b.Check(c.Set(b.Ctx, "cut", "here", 0).Err())
	if n, err := c.Wait(b.Ctx, 1, enginetest.Patience).Result(); err != nil || n != 1 {
		b.Fatalf("%d replicas have it all, %v", n, err)
	}
	b.Check(h.second.Client(b.T).Do(b.Ctx, "REPLICAOF", "NO", "ONE").Err())
	h.newLine.Redirect(h.second.Addr())
}

// heal makes the first primary a replica of the second, for a while with its clients, and then all
// talk to the second.
func (h *splitBrain) heal() {
	b := h.newSide
	b.Helper()
	words := []any{"REPLICAOF"}
	for _, w := range strings.Split(h.second.Addr(), ":") {
		words = append(words, w)
	}
	b.Check(h.first.Client(b.T).Do(b.Ctx, words...).Err())
	h.linked(h.first)
	time.Sleep(500 * time.Millisecond) // its engine is told READONLY
	h.oldLine.Redirect(h.second.Addr())
}

// mouth is one who writes numbers from a base on, in order, until it is told to stop.
type mouth struct {
	stop  context.CancelFunc
	done  sync.WaitGroup
	said  []int        // acknowledged
	maybe map[int]bool // not heard of
}

// says starts to write to all of some jobs and to publish on a channel.
func (b *bench) says(base int, lines ...job.ID) *mouth {
	b.Helper()
	var to []*client.Handle
	for _, id := range lines {
		h, err := b.Client.Find(b.Ctx, string(id))
		b.Check(err)
		to = append(to, h)
	}
	ctx, stop := context.WithCancel(b.Ctx)
	m := &mouth{stop: stop, maybe: map[int]bool{}}
	m.done.Go(func() {
		for n := base + 1; ctx.Err() == nil; n++ {
			heard := b.Client.Publish(b.Ctx, "/halves", n) == nil
			for _, h := range to {
				heard = h.Write(b.Ctx, "in", n) == nil && heard
			}
			if heard {
				m.said = append(m.said, n)
			} else {
				m.maybe[n] = true
			}
			time.Sleep(10 * time.Millisecond)
		}
	})
	return m
}

// quiet ends it, and returns when it says nothing more.
func (m *mouth) quiet() {
	m.stop()
	m.done.Wait()
}

// listener is a job that copies what comes on the channel.
func (b *bench) listener() *client.Handle {
	b.Helper()
	return b.Start(planned{&Hop{}, func(n *job.Node) {
		for i := range n.Ports {
			if n.Ports[i].Dir == port.Input {
				n.Ports[i].Channels = []string{"/halves"}
			}
		}
	}})
}

// heard fails the test unless of each mouth all that was acknowledged came out of a job, once and in order, and
// nothing else.
func (b *bench) heard(what string, got []int, mouths ...*mouth) {
	b.Helper()
	known := map[int]bool{}
	for _, m := range mouths {
		var its []int
		for n := range m.maybe {
			known[n] = true
		}
		for _, n := range m.said {
			known[n] = true
		}
		for _, n := range got {
			if slices.Contains(m.said, n) {
				its = append(its, n)
			}
		}
		if !slices.Equal(its, m.said) {
			b.Errorf("%s: %d of %d messages came out, or in another order: %v, want %v", what, len(its), len(m.said), its, m.said)
		}
	}
	seen := map[int]bool{}
	for _, n := range got {
		if !known[n] || seen[n] {
			b.Errorf("%s: %d came out, which nobody may have heard of, or again", what, n)
		}
		seen[n] = true
	}
}

// A network is cut in two halves, and there are two primaries for a while, each with clients that write and
// an engine. Then the old one becomes a replica of the new one. What the old half took since
// the cut is gone, and what it has under way is refused; all else goes on as if nothing had been.
func TestTwoPrimaries(t *testing.T) {
	t.Parallel()
	h := inSplitBrain(t)
	b := h.newSide
	// It holds in its run on the first message in the old half, on the second one in the new half.
	var holding, release [3]enginetest.Gate
	held := b.Start(job.Single(call(t, func(_ context.Context, _ *worker.Run, w *Call) error {
		v, ok, err := w.In.Read()
		if !ok || err != nil {
			return err
		}
		holding[v].Open()
		return errors.Join(release[v].Pass(b.Ctx), w.Out.Write(v)) // not its own context, which ends with its lease
	}), "holding"))
	b.serve(func(c *worker.Config) { c.Queues = map[string]int{job.DefaultQueue: 1, "holding": 1} })
	b.Completed(held, 1)
	h.oldSide.serve()
	cutOff := &process{bench: b, name: "of the old half"}
	h.oldSide.serve(func(c *worker.Config) {
		c.Queues = map[string]int{"holding": 1}
		c.Lease = time.Minute // it does not look meanwhile whether it still has it
		c.Logger = slog.New(slog.NewTextHandler(cutOff, nil))
	})
	subscriptions := []*client.Handle{b.listener(), b.Start(row(&Hop{})), b.Start(row(&Hop{}))}
	rows := []job.ID{subscriptions[1].ID(), subscriptions[2].ID()}
	before := b.says(beforeTheCut, rows...)
	story := b.tell(20 * time.Millisecond)
	b.Until("some runs are committed", func() bool { return story.begun(5) && len(enginetest.Outs[int](b, subscriptions[0], "out")) > 20 })
	before.quiet()

	h.cut()
	lost, kept := h.oldSide.says(inOldHalf, rows...), b.says(inNewHalf, rows...)
	for n, side := range map[int]*bench{1: h.oldSide, 2: b} {
		there, err := side.Client.Find(b.Ctx, string(held.ID()))
		b.Check(err)
		b.Check(there.Write(b.Ctx, "in", n))
		b.Check(holding[n].Pass(b.Ctx))
	}
	for side, base := range map[*bench]int{h.oldSide: inOldHalf, b: inNewHalf} {
		for _, subscription := range subscriptions {
			there, err := side.Client.Find(b.Ctx, string(subscription.ID()))
			b.Check(err)
			b.Until(fmt.Sprint("messages of ", base, " go through in their half"), func() bool {
				return slices.ContainsFunc(enginetest.Outs[int](side, there, "out"), func(n int) bool { return n > base+50 && n < base+inNewHalf })
			})
		}
	}
	lost.quiet()
	h.heal()
	kept.quiet()
	release[1].Open()
	cutOff.says("run was not committed")
	release[2].Open()
	mouths := []*mouth{before, kept, b.says(newAfterwards, rows...), h.oldSide.says(oldAfterwards, rows...)}
	time.Sleep(500 * time.Millisecond)
	for _, m := range mouths {
		m.quiet()
	}
	for _, id := range rows {
		hd, err := b.Client.Find(b.Ctx, string(id))
		b.Check(err)
		b.Check(hd.Close(b.Ctx, "in"))
	}
	story.check()
	for i, subscription := range subscriptions {
		b.Until("all that was acknowledged has come", func() bool {
			got := enginetest.Outs[int](b, subscription, "out")
			return !slices.ContainsFunc(mouths, func(m *mouth) bool {
				return len(m.said) > 0 && !slices.Contains(got, m.said[len(m.said)-1])
			})
		})
		got := enginetest.Outs[int](b, subscription, "out")
		b.heard(fmt.Sprint("ear ", i), got, mouths...)
		b.counted(subscription, got)
	}
	b.Logf("%d before, %d in the new half, %d in the old one, %d and %d afterwards", len(before.said), len(kept.said),
		len(lost.said), len(mouths[2].said), len(mouths[3].said))
	b.Until("the held run of the new half is committed", func() bool { return len(enginetest.Outs[int](b, held, "out")) > 0 })
	b.same(held, 2)
}
