package rig

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/weirworks/weir/chaos/internal/crew"
	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/job"
)

// register is one key of the state of a job, which clients set, have set by the job's runs,
// and read, all at the same time: to each of them it must look as if all did so one after
// another.
type register struct {
	name string

	mu      sync.Mutex
	history []porcupine.Operation
}

// access is an operation on a register.
type access struct {
	write bool
	value int
}

const (
	registerClients = 3
	registerOpsEach = 8
)

// registers uses keys of a job, one after another.
func (r *rig) registers(ctx context.Context) {
	h := r.start(ctx, r.name("register"), job.Single(&crew.Register{}, ""))
	if h == nil {
		return
	}
	for n := range 10 {
		if ctx.Err() != nil {
			return
		}
		reg := &register{name: fmt.Sprintf("key_%d of job %s", n, h.ID())}
		r.add(reg)
		var wg sync.WaitGroup
		for client := range registerClients {
			wg.Go(func() { reg.use(ctx, r, h, fmt.Sprintf("key_%d", n), client) })
		}
		wg.Wait()
	}
}

// use makes one client's operations.
func (g *register) use(ctx context.Context, r *rig, h *client.Handle, key string, client int) {
	for i := range registerOpsEach {
		if !pause(ctx, r.between(0, 20*time.Millisecond)) {
			return
		}
		v := client*registerOpsEach + i + 1
		began := time.Since(r.began).Nanoseconds()
		op := porcupine.Operation{ClientId: client, Input: access{write: true, value: v}, Call: began}
		call, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTime)
		var known bool
		switch x := r.chance(); {
		case x < 0.45:
			state, err := h.State(call, key)
			if known = err == nil; !known {
				cancel()
				continue // what was not read says nothing
			}
			op.Input, op.Output = access{}, number[int](state[key])
		case x < 0.8:
			known = h.SetState(call, map[string]any{key: v}) == nil
		default:
			known = putByRun(call, h, key, v)
		}
		cancel()
		if op.Return = math.MaxInt64; known { // else it may yet happen, at any time
			op.Return = time.Since(r.began).Nanoseconds()
		}
		g.mu.Lock()
		g.history = append(g.history, op)
		g.mu.Unlock()
		r.count(registerOps, 1)
	}
}

// putByRun has a run of the job set a value, and waits until that is seen to be done.
func putByRun(ctx context.Context, h *client.Handle, key string, v int) bool {
	done := fmt.Sprintf("done_%s_%d", key, v)
	if h.Write(ctx, "in", crew.Put{Key: key, Value: v, Done: done}) != nil {
		return false
	}
	for pause(ctx, 20*time.Millisecond) {
		if state, err := h.State(ctx, done); err == nil && len(state) > 0 {
			return true
		}
	}
	return false
}

// model is a register: it holds what was written last.
var model = porcupine.Model{
	Init: func() any { return 0 },
	Step: func(state, input, output any) (bool, any) {
		a, _ := input.(access)
		if a.write {
			return true, a.value
		}
		return output == state, state
	},
	DescribeOperation: func(input, output any) string {
		a, _ := input.(access)
		if a.write {
			return fmt.Sprintf("write %d", a.value)
		}
		return fmt.Sprintf("read %v", output)
	},
}

// judging is how long one history may take to be judged.
const judging = 20 * time.Second

// check implements round.
func (g *register) check(_ context.Context, r *rig) error {
	switch porcupine.CheckOperationsTimeout(model, g.history, judging) {
	case porcupine.Ok:
	case porcupine.Illegal:
		text := ""
		for _, op := range g.history {
			text += fmt.Sprintf("\n  client %d, %d to %d µs: %s", op.ClientId, op.Call/1000, op.Return/1000, model.DescribeOperation(op.Input, op.Output))
		}
		r.bad(notLinear, "%s: no order explains what its clients saw:%s", g.name, text)
	case porcupine.Unknown:
		r.bad(trouble, "%s: its history of %d operations could not be judged in %s", g.name, len(g.history), judging)
	}
	return nil
}
