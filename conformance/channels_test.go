package conformance_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/worker"
)

// messages returns what a port holds, but not the statuses of jobs that are published to
// all who hear everything.
func (e *bench) messages(h *client.Handle, name string) []string {
	e.Helper()
	items, _, err := e.Store.Peek(e.Ctx, h.ID(), port.Input, name, 1000)
	e.Check(err)
	all := []string{}
	for _, item := range items {
		if data, _ := port.Split(item); !strings.Contains(string(data), `"status":`) {
			all = append(all, string(data))
		}
	}
	return all
}

// arrived waits until a port holds just these messages.
func (e *bench) arrived(h *client.Handle, name string, want ...string) {
	e.Helper()
	e.Until(fmt.Sprintf("%d messages have arrived", len(want)), func() bool { return len(e.messages(h, name)) >= len(want) })
	if got := e.messages(h, name); !slices.Equal(got, want) {
		e.Errorf("port %q holds %q, want %q", name, got, want)
	}
}

// subscribers returns who subscribes to a channel.
func (e *bench) subscribers(channel string) []string {
	e.Helper()
	who, err := e.Redis.SMembers(e.Ctx, fmt.Sprintf("weir:{%s}:ch:%s", e.Namespace, channel)).Result()
	e.Check(err)
	slices.Sort(who)
	return who
}

func TestH1OutPortsPublish(t *testing.T) {
	onEach(t, func(e *bench) {
		e.serve(&Free{})
		a, b := e.free(nil, in("in", "/h1/a")), e.free(nil, in("in", "/h1/b"))
		loop := e.free(nil, in("in", "/h1/c"))
		heard := e.free(nil, in("in", "/h1/c"))
		h := e.free(once(func(run *worker.Run) error { return put(run, "out", "1", "2") }), kept("out", "/h1/a", "/h1/b"))
		only := e.free(once(func(run *worker.Run) error { return put(run, "out", "8") }), out("out", "/h1/d"))
		for _, j := range []*client.Handle{a, b, h, only} {
			e.settled(j, 1)
		}
		e.empties(only, port.Output, "out") // published, and not kept
		e.Check(h.WriteOut(e.Ctx, "out", 3))
		e.arrived(a, "in", "1", "2", "3")
		e.arrived(b, "in", "1", "2", "3")
		e.empties(h, port.Output, "out", "1", "2", "3") // they stay in the port as well, as they are to be kept
		e.Check(loop.Write(e.Ctx, "in", 4))
		e.Check(e.Client.Publish(e.Ctx, "/h1/c", 5))
		e.arrived(heard, "in", "5")
		e.empties(loop, port.Input, "in", "4", "5")
	})
}

func TestH2ChannelsAboveHear(t *testing.T) {
	onEach(t, func(e *bench) {
		e.serve(&Free{})
		readers := map[string]*client.Handle{}
		for _, c := range []string{"/a/b/c", "/a/b", "/a", "/"} {
			readers[c] = e.free(nil, in("in", c))
		}
		all := e.free(nil, in("in", "/", "/a", "/a/b/c"), in("two", "/a/b"))
		deaf := e.free(nil, in("in", "/a/b/c/d", "/a/bb", "/b", "/a/b/cc"))
		ctx := job.WithContext(e.Ctx, port.Context{"k": 1, "channel": "/old"})
		e.Check(e.Client.Publish(ctx, "/a/b/c", 1))
		for _, h := range readers {
			e.arrived(h, "in", "1")
		}
		e.arrived(all, "in", "1")
		e.arrived(all, "two", "1")
		e.Check(e.Client.Publish(e.Ctx, "/a", 2))
		e.Check(e.Client.Publish(e.Ctx, "/", 3))
		e.arrived(readers["/"], "in", "1", "2", "3")
		e.arrived(readers["/a"], "in", "1", "2")
		e.arrived(all, "in", "1", "2", "3")
		e.arrived(readers["/a/b"], "in", "1")
		e.holds(deaf, port.Input, "in", 0)
		e.refused(e.Client.Publish(e.Ctx, "a", 1), port.ErrName)
		e.refused(e.Client.Publish(e.Ctx, "/a//b", 1), port.ErrName)
	})
}

func TestH2ContextHasTheChannel(t *testing.T) {
	onEach(t, func(e *bench) {
		e.serve(&Free{})
		reader := func(relay bool, specs ...port.Spec) *client.Handle {
			return e.free(func(run *worker.Run) error {
				v, err := next(run, "in")
				if err != nil || v == "none" {
					return err
				}
				c, err := run.MessageContext("in")
				if err != nil {
					return err
				}
				if err := run.State().Set("context", c); err != nil || !relay {
					return err
				}
				return run.WithContext(c, func() error { return put(run, "out", v) })
			}, specs...)
		}
		top := reader(false, in("in", "/x"))
		last := reader(false, in("in", "/y"))
		relay := reader(true, in("in", "/x/y"), out("out", "/y/z"))
		for _, h := range []*client.Handle{top, last, relay} {
			e.settled(h, 1)
		}
		e.Check(e.Client.Publish(job.WithContext(e.Ctx, port.Context{"k": 1}), "/x/y/z", 1))
		for _, h := range []*client.Handle{top, last, relay} {
			e.settled(h, 2)
		}
		e.has(top, "context", `{"channel":"/x/y/z","k":1}`)
		e.has(relay, "context", `{"channel":"/x/y/z","k":1}`)
		e.has(last, "context", fmt.Sprintf(`{"by":"job:%s","channel":"/y/z","k":1}`, relay.ID()))
	})
}

func TestH3SubscribersWakeAndGo(t *testing.T) {
	onEach(t, func(e *bench) {
		e.serve(&Free{})
		suspended := e.free(func(run *worker.Run) error {
			v, err := next(run, "in")
			if err == nil {
				err = run.State().Set("got", v)
			}
			if err != nil {
				return err
			}
			return worker.ErrSuspend
		}, in("in", "/h3"))
		gone, left := e.free(nil, in("in", "/h3")), e.free(nil, in("in", "/h3"), in("other", "/h3"))
		for _, h := range []*client.Handle{suspended, gone, left} {
			e.settled(h, 1)
		}
		e.Until("all have subscribed", func() bool { return len(e.subscribers("/h3")) == 4 })
		e.woken(func() { e.Check(e.Client.Publish(e.Ctx, "/h3", 1)) }, suspended)
		e.has(suspended, "got", `"1"`)
		e.is(suspended, statemachine.Suspended)
		e.arrived(left, "in", "1")
		e.arrived(left, "other", "1")
		e.Check(gone.Terminate(e.Ctx))
		e.reach(gone, statemachine.Terminated)
		e.Check(gone.Delete(e.Ctx))
		e.Check(left.SetPorts(e.Ctx, []port.Spec{in("in"), in("other", "/h3")}))
		want := []string{string(suspended.ID()) + " in", string(left.ID()) + " other"}
		slices.Sort(want)
		e.Until("two are left", func() bool { return slices.Equal(e.subscribers("/h3"), want) })
		e.woken(func() { e.Check(e.Client.Publish(e.Ctx, "/h3", 2)) }, suspended)
		e.has(suspended, "got", `"2"`)
		e.arrived(left, "other", "1", "2")
		e.empties(left, port.Input, "in", "1")
		if keys := e.keysOf(gone); len(keys) > 0 {
			e.Errorf("keys of a deleted job: %q", keys)
		}
		// A subscriber that is gone anyway is dropped by the next message.
		stale := string(gone.ID()) + " in"
		e.Check(e.Redis.SAdd(e.Ctx, fmt.Sprintf("weir:{%s}:ch:/h3", e.Namespace), stale).Err())
		e.Check(e.Client.Publish(e.Ctx, "/h3", 3))
		e.Until("the stale one is dropped", func() bool { return !slices.Contains(e.subscribers("/h3"), stale) })
	})
}

// Jobs that hear of statuses, also of each other's, do not wake themselves indefinitely.
func TestH4StatusSubscribersMakeNoLoop(t *testing.T) {
	onEach(t, func(e *bench) {
		e.serve(&Free{})
		hear := func(run *worker.Run) error {
			for v := ""; v != "none"; {
				var err error
				if v, err = next(run, "in"); err != nil {
					return err
				}
			}
			return nil
		}
		watchers := []*client.Handle{e.free(hear, in("in", "/weir")), e.free(hear, in("in", "/")), e.free(hear, in("in"))}
		e.settled(watchers[2], 1)
		e.Check(watchers[2].SetPorts(e.Ctx, []port.Spec{in("in", "/weir/job")})) // later
		other := e.free(nil, in("in"))
		e.settled(other, 1)
		e.Until("all shards publish", func() bool {
			n := 0
			for _, k := range e.keys() {
				if strings.HasSuffix(k, ":watch") {
					n++
				}
			}
			return n == 4
		})
		for _, w := range watchers {
			before := e.settled(w, 1).Steps
			e.Check(other.Run(e.Ctx))
			e.Until("a watcher hears", func() bool { return e.Info(w).Steps > before })
		}
		// Quiet again: no order on its way, nothing due, for as long as a loop would not stay silent.
		var steps int64
		count := func() (n int64) {
			for _, w := range watchers {
				n += e.settled(w, 1).Steps
			}
			return n
		}
		for still, last := 0, int64(-1); still < 60; still++ {
			if steps = count(); steps != last {
				still, last = 0, steps
			}
			if steps > 200 {
				e.Fatalf("watchers ran %d times", steps)
			}
			time.Sleep(enginetest.PollInterval)
		}
	})
}

func TestH5OutsideListenersHearTheExactChannel(t *testing.T) {
	onEach(t, func(e *bench) {
		e.serve(&Free{})
		listen := func(channel string) chan string {
			got := make(chan string, 100)
			ctx, stop := context.WithCancel(e.Ctx)
			done := make(chan struct{})
			go func() {
				defer close(done)
				_ = e.Client.Listen(ctx, channel, func(m json.RawMessage) { got <- string(m) })
			}()
			e.Cleanup(func() { stop(); <-done })
			e.Until("somebody listens", func() bool {
				e.Check(e.Client.Publish(e.Ctx, channel, "ping"))
				return len(got) > 0
			})
			return got
		}
		exact, above, below := listen("/h5/a"), listen("/h5"), listen("/h5/a/b")
		h := e.free(once(func(run *worker.Run) error { return put(run, "out", `{"n":1}`) }), out("out", "/h5/a"))
		e.settled(h, 1)
		e.Check(e.Client.Publish(e.Ctx, "/h5", "end"))
		e.Check(e.Client.Publish(e.Ctx, "/h5/a/b", "end"))
		heard := func(from chan string, last string) []string {
			all := []string{}
			for deadline := time.After(enginetest.Patience); ; {
				select {
				case m := <-from:
					if m != `"ping"` {
						all = append(all, m)
					}
					if m == last {
						return all
					}
				case <-deadline:
					e.Fatalf("heard only %q", all)
				}
			}
		}
		for _, want := range []string{`{"n":1}`, "2"} {
			if got := heard(exact, want); len(got) != 1 {
				e.Errorf("heard %q", got)
			}
			e.Check(e.Client.Publish(job.WithContext(e.Ctx, port.Context{"k": 1}), "/h5/a", 2))
		}
		for _, c := range []chan string{above, below} {
			if got := heard(c, `"end"`); len(got) != 1 {
				e.Errorf("heard %q", got)
			}
		}
	})
}
