package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/worker"
)

// Two programs have the type argued; the newer one has one more argument, and another kind of value in one.
type (
	arguedOld struct {
		Rate int
		Out  port.Out[int]
	}
	arguedNew struct {
		Rate ratio
		Note string
		Out  port.Out[int]
	}
)

// ratio is a number, or a text like 1:2.
type ratio string

func (r *ratio) UnmarshalJSON(raw []byte) error {
	*r = ratio(strings.Trim(string(raw), `"`))
	return nil
}

func (*arguedOld) JobType() string { return "argued" }
func (*arguedNew) JobType() string { return "argued" }

func (w *arguedOld) Run(context.Context, *worker.Run) error { return w.Out.Write(1) }
func (w *arguedNew) Run(context.Context, *worker.Run) error { return w.Out.Write(2) }

// slots is how many runs an engine of these tests has at a time.
const slots = 4

// only returns options for an engine that runs only these types.
func only(workers ...worker.Worker) func(c *worker.Config) {
	return func(c *worker.Config) { c.Workers = workers }
}

// A job with an argument that an engine does not know, or cannot decode, is left to engines that can, and says why. Engines
// that cannot do not take it again and again.
func TestUnknownArgumentWaitsForItsEngine(t *testing.T) {
	for name, args := range map[string]string{"unknown": `{"Rate":1,"Note":"x"}`, "undecodable": `{"Rate":"1:2"}`} {
		t.Run(name, func(t *testing.T) {
			each(t, func(b *bench) {
				old := b.serve(only(&arguedOld{}, &Count{}))
				h := b.Start(planned{&arguedNew{}, func(n *job.Node) { n.Args = json.RawMessage(args) }})
				want := map[string]string{"unknown": `"Note"`, "undecodable": "Rate"}[name]
				b.Until("the job says what cannot be decoded", func() bool {
					info := b.Info(h)
					return info.Status == statemachine.Queued && strings.Contains(info.Reason, want)
				})
				others := func(n int) *job.Info { // are served
					for range n {
						b.Completed(b.single(&Count{To: 1}), 1)
						b.Completed(b.single(&arguedOld{}), 1)
					}
					info := b.Info(h)
					return info
				}
				before := others(10) // each slot may have asked already when the first was refused
				b.Until("it is in its ready set", func() bool { return b.queue(job.DefaultQueue).Pending == 1 })
				info := others(40)
				if info.Version > slots || info.Version != before.Version || info.Steps != 0 || info.Tries != 0 || info.Status != statemachine.Queued {
					b.Errorf("after %d commits, %d before, %d steps and %d tries it is %s", info.Version, before.Version, info.Steps, info.Tries, info.Status)
				}
				b.serve(only(&arguedNew{}))
				info = b.Completed(h, 1)
				b.same(h, 2)
				if info.Reason != "" || info.Steps != 1 || info.Version != before.Version+1 {
					b.Errorf("reason %q, %d steps, %d commits", info.Reason, info.Steps, info.Version)
				}
				old.Stop()
			})
		})
	}
}

// A job that several builds could not decode waits for one that can, and is found by it, also in the engine that the write
// to it comes from.
func TestSeveralBuildsRefuse(t *testing.T) {
	b := onRedis(t)
	b.serve(only(&arguedOld{}))
	b.serve(only(&arguedOld{}, &Count{}))
	h := b.Start(planned{&arguedNew{}, func(n *job.Node) { n.Args = json.RawMessage(`{"Rate":true,"Note":"x"}`) }})
	b.Until("both builds have refused it", func() bool {
		info := b.Info(h)
		return info.Needs != nil && len(info.Needs.Refused) == 2
	})
	b.serve(only(&arguedNew{}))
	b.Completed(h, 1)
	b.same(h, 2)
}

// If no engine comes that can decode a job that is to end, it ends without its Shutdown.
func TestTerminateUndecodable(t *testing.T) {
	b := onRedis(t)
	b.serve(only(&arguedOld{}))
	h := b.Start(planned{&arguedNew{}, func(n *job.Node) { n.Args = json.RawMessage(`{"Rate":1,"Note":"x"}`) }})
	b.Check(h.Terminate(b.Ctx))
	info := b.Reach(h, 0, statemachine.Terminated)
	if !strings.Contains(info.Reason, `"Note"`) || !strings.Contains(info.Reason, "without Shutdown") {
		b.Errorf("reason %q", info.Reason)
	}
}

// Versions of a type: the first has a limit in pounds and counts in state "n"; the second has it in pence, and a list of
// what it read in state "seen".
type (
	sumV1 struct {
		Pounds int
		In     port.In[int]
		Out    port.Out[string]
	}
	sumV2 struct {
		Pence int
		In    port.In[int]
		Out   port.Out[string]
	}
	sumV3 struct{ sumV2 }
)

func (*sumV1) JobType() string { return "sum" }
func (*sumV2) JobType() string { return "sum" }
func (*sumV3) JobType() string { return "sum" }
func (*sumV2) Version() int    { return 2 }
func (*sumV3) Version() int    { return 3 }

func (*sumV2) UpgradeArgs(_ int, args json.RawMessage) (json.RawMessage, error) {
	var old struct{ Pounds int }
	if err := json.Unmarshal(args, &old); err != nil {
		return nil, err
	}
	return json.Marshal(map[string]int{"Pence": 100 * old.Pounds})
}

func (*sumV3) UpgradeArgs(from int, args json.RawMessage) (json.RawMessage, error) {
	if from == 1 {
		return (&sumV2{}).UpgradeArgs(from, args)
	}
	return args, nil
}

func (*sumV2) UpgradeState(_ int, state map[string]json.RawMessage) error {
	state["seen"] = json.RawMessage(fmt.Sprintf("[%s]", state["n"]))
	delete(state, "n")
	return nil
}

func (*sumV3) UpgradeState(from int, state map[string]json.RawMessage) error {
	if from == 1 {
		return (&sumV2{}).UpgradeState(from, state)
	}
	state["third"] = json.RawMessage("true")
	return nil
}

func (w *sumV1) Run(_ context.Context, run *worker.Run) error {
	n := 0
	_, err := run.State().Get("n", &n)
	for v, more := range w.In.All() {
		n += v
		err = errors.Join(err, more, run.State().Set("n", n))
	}
	return errors.Join(err, w.Out.Write(fmt.Sprintf("v1: %d of £%d", n, w.Pounds)), suspended())
}

func (w *sumV2) Run(_ context.Context, run *worker.Run) error {
	var seen []int
	_, err := run.State().Get("seen", &seen)
	for v, more := range w.In.All() {
		seen = append(seen, v)
		err = errors.Join(err, more, run.State().Set("seen", seen))
	}
	return errors.Join(err, w.Out.Write(fmt.Sprintf("v2: %v of %dp", seen, w.Pence)), suspended())
}

func suspended() error { return worker.ErrSuspend }

// said is what a job wrote last.
func (b *bench) said(h *client.Handle) string {
	all := enginetest.Outs[string](b, h, "out")
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1]
}

// A newer version upgrades args and state of an older one. What it has not written the older version may still run; what
// it has waits for it, and says so.
func TestUpgradeAndDowngrade(t *testing.T) {
	each(t, func(b *bench) {
		first := b.serve(only(&sumV1{}))
		touched, untouched := b.single(&sumV1{Pounds: 3}), b.single(&sumV1{Pounds: 4})
		for _, h := range []*client.Handle{touched, untouched} {
			b.Check(h.Write(b.Ctx, "in", 5))
			b.Until("the first version ran", func() bool { return strings.HasPrefix(b.said(h), "v1: 5 of") })
		}
		first.Stop()
		second := b.serve(only(&sumV2{}))
		b.Check(touched.Write(b.Ctx, "in", 6))
		b.Until("the second version ran", func() bool { return b.said(touched) == "v2: [5 6] of 300p" })
		b.Check(untouched.Run(b.Ctx)) // which reads and changes nothing
		b.Until("the second version ran on the other job", func() bool { return b.said(untouched) == "v2: [5] of 400p" })
		fresh := b.single(&sumV2{Pence: 7})
		second.Stop()

		first = b.serve(only(&sumV1{}))
		for _, h := range []*client.Handle{touched, fresh, untouched} {
			b.Check(h.Write(b.Ctx, "in", 1))
		}
		b.Until("the first version runs what it can", func() bool { return b.said(untouched) == "v1: 6 of £4" })
		for _, h := range []*client.Handle{touched, fresh} {
			b.Until("the other job says what it waits for", func() bool {
				info := b.Info(h)
				return info.Status == statemachine.Queued && info.TypeVersion == 2 && strings.Contains(info.Reason, "version 2")
			})
		}
		first.Stop()

		b.serve(only(&sumV3{}))
		b.Until("the third version ran", func() bool { return b.said(touched) == "v2: [5 6 1] of 300p" && b.said(fresh) == "v2: [1] of 7p" })
		if got := b.State(touched); got["third"] != "true" || got["n"] != "" || got["seen"] != "[5,6,1]" {
			b.Errorf("state %v", got)
		}
		b.Check(untouched.Run(b.Ctx))
		b.Until("it upgrades by two steps", func() bool { return b.said(untouched) == "v2: [6] of 400p" })
		for _, h := range []*client.Handle{touched, fresh, untouched} {
			fs, err := h.Failures(b.Ctx)
			if err != nil || len(fs) > 0 {
				b.Errorf("failures %v, %v", fs, err)
			}
		}
	})
}

// sumBad cannot upgrade what it should.
type sumBad struct{ sumV2 }

func (*sumBad) UpgradeState(int, map[string]json.RawMessage) error {
	return errors.New("no such state")
}

// An upgrade that fails leaves the job, untouched, to engines that can.
func TestUpgradeThatFailsWaits(t *testing.T) {
	b := onRedis(t)
	first := b.serve(only(&sumV1{}))
	h := b.single(&sumV1{Pounds: 3})
	b.Check(h.Write(b.Ctx, "in", 5))
	b.Until("the first version ran", func() bool { return b.said(h) == "v1: 5 of £3" })
	first.Stop()
	b.serve(only(&sumBad{}))
	b.Check(h.Write(b.Ctx, "in", 6))
	b.Until("the job says why it waits", func() bool {
		info := b.Info(h)
		return info.Status == statemachine.Queued && strings.Contains(info.Reason, "no such state")
	})
	b.serve(only(&sumV2{}))
	b.Until("the good one ran", func() bool { return b.said(h) == "v2: [5 6] of 300p" })
}

// failing fails in its second version.
type (
	failingV1 struct {
		Old int
		Out port.Out[int]
	}
	failingV2 struct {
		New int
		Out port.Out[int]
	}
)

func (*failingV1) JobType() string { return "failing" }
func (*failingV2) JobType() string { return "failing" }
func (*failingV2) Version() int    { return 2 }

func (w *failingV1) Run(context.Context, *worker.Run) error { return w.Out.Write(w.Old) }
func (*failingV2) Run(context.Context, *worker.Run) error {
	return worker.Permanent(errors.New("the second version fails"))
}

// A job that a newer version created, and failed, is run by an older one once that is all there is, with args that it can decode: though the
// newer version was registered last.
func TestRetryWithArgsOfAnOlderVersion(t *testing.T) {
	each(t, func(b *bench) {
		b.serve(only(&failingV1{}))
		b.Completed(b.single(&failingV1{}), 1)
		second := b.serve(only(&failingV2{}))
		h := b.single(&failingV2{New: 1})
		b.Reach(h, 0, statemachine.Failed)
		second.Stop()
		b.Check(h.Retry(b.Ctx, client.RetryArgs(json.RawMessage(`{"Old":7}`))))
		if info := b.Completed(h, 0); info.TypeVersion > 1 {
			b.Errorf("it needs version %d", info.TypeVersion)
		}
		b.same(h, 7)
	})
}
