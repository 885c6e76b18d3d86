package crew

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/worker"
)

// TallyV1 is the first of two versions of one type, which passes messages on and counts them: processes run either.
type TallyV1 struct {
	tuned
	Add int
	In  port.In[Message]
	Out port.Out[Message]
}

// TallyV2 is the second. It has Adds where the first has Add, and under one key of the state what that keeps under two.
type TallyV2 struct {
	tuned
	Adds []int
	In   port.In[Message]
	Out  port.Out[Message]
}

// tallied is the state of the second version.
type tallied struct {
	Count int
	Sum   uint32
}

// talliedKey is where it is.
const talliedKey = "tallied"

// JobType implements job.TypeNamer.
func (*TallyV1) JobType() string { return "Tally" }

// JobType implements job.TypeNamer.
func (*TallyV2) JobType() string { return "Tally" }

// Version implements job.Versioned.
func (*TallyV2) Version() int { return 2 }

// UpgradeArgs implements worker.ArgsUpgrader.
func (*TallyV2) UpgradeArgs(_ int, args json.RawMessage) (json.RawMessage, error) {
	var old struct{ Add int }
	if err := json.Unmarshal(args, &old); err != nil {
		return nil, fmt.Errorf("the args of the first version: %w", err)
	}
	return port.Encode(map[string][]int{"Adds": {old.Add}})
}

// UpgradeState implements worker.StateUpgrader.
func (*TallyV2) UpgradeState(_ int, state map[string]json.RawMessage) error {
	var t tallied
	err := errors.Join(json.Unmarshal(state[CountKey], &t.Count), json.Unmarshal(state[SumKey], &t.Sum))
	raw, wrong := port.Encode(t)
	delete(state, CountKey)
	delete(state, SumKey)
	state[talliedKey] = raw
	return errors.Join(err, wrong)
}

// Run implements worker.Worker.
func (w *TallyV1) Run(_ context.Context, run *worker.Run) error {
	return pass(run, w.In, func(m Message) error {
		m.N += w.Add
		return w.Out.Write(m)
	})
}

// Run implements worker.Worker. It checks the state that it was given.
func (w *TallyV2) Run(_ context.Context, run *worker.Run) error {
	defer running(run)()
	var t tallied
	if _, err := run.State().Get(talliedKey, &t); err != nil {
		return err
	}
	for m, err := range w.In.All() {
		if err != nil {
			return err
		}
		if m.N != t.Count+1 {
			return fmt.Errorf("message %d comes after %d", m.N, t.Count)
		}
		t.Count, t.Sum = t.Count+1, Sum(t.Sum, m.N)
		for _, n := range w.Adds {
			m.N += n
		}
		if err := w.Out.Write(m); err != nil {
			return err
		}
		think()
		if t.Count%3 != 0 {
			break
		}
	}
	return run.State().Set(talliedKey, t)
}

// Tally returns the type as a client has it that was built with a version.
func Tally(version, add int) any {
	if version == 1 {
		return &TallyV1{Add: add}
	}
	return &TallyV2{Adds: []int{add - 1, 1}}
}

// of returns the workers of a program that has a version of Tally.
func of(version int, all []worker.Worker) []worker.Worker {
	for i, w := range all {
		if name, err := job.TypeOf(w); err == nil && name == "Tally" && version == 1 {
			all[i] = &TallyV1{}
		}
	}
	return all
}
