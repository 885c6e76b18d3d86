package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/worker"
)

// Two versions of a type: both pass numbers on, times an argument, and count them. The second has its argument and its state
// under other names, in another form.
type (
	scaleV1 struct {
		By  int
		In  port.In[int]
		Out port.Out[int]
	}
	scaleV2 struct {
		Factors []int
		In      port.In[int]
		Out     port.Out[int]
	}
	// scaled is the state of the second version.
	scaled struct{ Count, Last int }
)

func (*scaleV1) JobType() string { return "scale" }
func (*scaleV2) JobType() string { return "scale" }
func (*scaleV2) Version() int    { return 2 }

// UpgradeArgs implements worker.ArgsUpgrader.
func (*scaleV2) UpgradeArgs(_ int, args json.RawMessage) (json.RawMessage, error) {
	var old struct{ By int }
	if err := json.Unmarshal(args, &old); err != nil {
		return nil, err
	}
	return json.Marshal(map[string][]int{"Factors": {old.By}})
}

// UpgradeState implements worker.StateUpgrader.
func (*scaleV2) UpgradeState(_ int, state map[string]json.RawMessage) error {
	var s scaled
	err := errors.Join(json.Unmarshal(state["count"], &s.Count), json.Unmarshal(state["last"], &s.Last))
	raw, wrong := json.Marshal(s)
	delete(state, "count")
	delete(state, "last")
	state["scaled"] = raw
	return errors.Join(err, wrong)
}

// Run implements worker.Worker. It reads one number.
func (w *scaleV1) Run(_ context.Context, run *worker.Run) error {
	n, ok, err := w.In.Read()
	if err != nil || !ok {
		return err
	}
	count, last := 0, 0
	_, err = run.State().Get("count", &count)
	_, other := run.State().Get("last", &last)
	if last > n {
		return fmt.Errorf("%d comes after %d", n, last)
	}
	return errors.Join(err, other, run.State().Set("count", count+1), run.State().Set("last", n), w.Out.Write(n*w.By))
}

// Run implements worker.Worker. It reads one number.
func (w *scaleV2) Run(_ context.Context, run *worker.Run) error {
	n, ok, err := w.In.Read()
	if err != nil || !ok {
		return err
	}
	var s scaled
	if _, err := run.State().Get("scaled", &s); err != nil {
		return err
	}
	if s.Last > n {
		return fmt.Errorf("%d comes after %d", n, s.Last)
	}
	by := 1
	for _, f := range w.Factors {
		by *= f
	}
	return errors.Join(run.State().Set("scaled", scaled{Count: s.Count + 1, Last: n}), w.Out.Write(n*by))
}

// releasedAs returns the workers of a process whose name is that of a version; nil for others.
func releasedAs(name string) []worker.Worker {
	switch {
	case strings.HasPrefix(name, "v1"):
		return []worker.Worker{&scaleV1{}}
	case strings.HasPrefix(name, "v2"):
		return []worker.Worker{&scaleV2{}}
	}
	return nil
}

// stopped ends a process as a deploy does.
func (p *process) stopped() {
	p.bench.Helper()
	p.tell("stop")
	p.says("stopped")
}

// fed are jobs that a test writes to, 0, 1, 2… to each.
type fed struct {
	*bench
	jobs []*client.Handle
	sent int
}

// feed writes more numbers to all jobs, and meanwhile does something.
func (f *fed) feed(n int, meanwhile func()) {
	f.Helper()
	var done sync.WaitGroup
	for _, h := range f.jobs {
		done.Go(func() {
			for i := range n {
				if err := h.Write(f.Ctx, "in", f.sent+i); err != nil {
					f.Error(err)
					return
				}
			}
		})
	}
	meanwhile()
	done.Wait()
	f.sent += n
}

// whole waits until the jobs have passed on all that was sent, times their factor, once and in order.
func (f *fed) whole(by int) {
	f.Helper()
	for _, h := range f.jobs {
		f.Until("all numbers came through", func() bool {
			info := f.Info(h)
			p, _ := info.Port(port.Output, "out")
			return p.Waiting >= int64(f.sent)
		})
		for i, n := range enginetest.Outs[int](f.bench, h, "out") {
			if n != i*by || i >= f.sent {
				f.Errorf("number %d is %d, want %d of %d", i, n, i*by, f.sent)
				break
			}
		}
		if fs, err := h.Failures(f.Ctx); err != nil || len(fs) > 0 {
			f.Errorf("failures %v, %v", fs, err)
		}
	}
}

// Two processes go from version 1 of a type to version 2, back, and to 2 again, under load: nothing is lost or done twice, nothing
// fails, and what version 2 has written waits for it, and says so.
func TestDeployForthAndBack(t *testing.T) {
	b := onRedis(t)
	old := &fed{bench: b}
	for range 12 {
		old.jobs = append(old.jobs, b.single(&scaleV1{By: 3}))
	}
	first, second := b.process("v1a"), b.process("v1b")
	old.feed(20, func() {})
	old.feed(30, first.stopped)
	first = b.process("v2a") // both versions run jobs
	old.feed(30, second.stopped)
	second = b.process("v2b")
	fresh := &fed{bench: b}
	for range 6 {
		fresh.jobs = append(fresh.jobs, b.single(&scaleV2{Factors: []int{5, 2}}))
	}
	fresh.feed(20, func() {})
	old.feed(20, func() {})
	old.whole(3)
	fresh.whole(10)

	old.feed(20, first.stopped) // back to the first version
	first = b.process("v1c")
	second.stopped()
	second = b.process("v1d")
	older := &fed{bench: b}
	for range 6 {
		older.jobs = append(older.jobs, b.single(&scaleV1{By: 7}))
	}
	fresh.feed(10, func() {})
	old.feed(10, func() {})
	older.feed(30, func() {})
	older.whole(7)
	for _, h := range append(old.jobs, fresh.jobs...) {
		b.Until("it waits for the second version", func() bool {
			info := b.Info(h)
			return info.Status == statemachine.Queued && info.TypeVersion == 2 && strings.Contains(info.Reason, "version 2")
		})
	}
	older.feed(20, first.stopped)
	b.process("v2c")
	older.feed(20, second.stopped)
	old.whole(3)
	fresh.whole(10)
	older.whole(7)
	for _, h := range old.jobs {
		var s scaled
		b.Check(json.Unmarshal([]byte(b.State(h)["scaled"]), &s))
		if s.Count != old.sent || s.Last != old.sent-1 {
			b.Errorf("it counted %+v of %d", s, old.sent)
		}
	}
}
