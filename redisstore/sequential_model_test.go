package redisstore_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
)

// serialModel is what sequential keys mean: of each key a list of trees in the order of their creation, of which at most one is active.
type serialModel struct {
	*env
	keys []string
	jobs []*serialJob
}

type serialJob struct {
	id      job.ID
	key     string
	status  job.Status
	holds   bool
	crashes int
	run     *store.Snapshot // that is going on
}

func over(s job.Status) bool {
	return s == job.Completed || s == job.Failed || s == job.Terminated
}

// become gives a job a status, and says what follows for the others of its key.
func (m *serialModel) become(j *serialJob, to job.Status) {
	switch from := j.status; {
	case over(from) && !over(to) && to != job.Terminating:
		if m.holder(j.key) != nil {
			to = job.Waiting
		} else {
			j.holds = true
		}
	case over(to) && j.holds:
		j.holds = false
		if next := m.next(j.key, j); next != nil {
			next.holds, next.status = true, job.Queued
		}
	}
	j.status = to
}

func (m *serialModel) holder(key string) *serialJob {
	for _, j := range m.jobs {
		if j.key == key && j.holds {
			return j
		}
	}
	return nil
}

// next is the first that waits: jobs are in the order of their creation.
func (m *serialModel) next(key string, but *serialJob) *serialJob {
	for _, j := range m.jobs {
		if j.key == key && j.status == job.Waiting && j != but {
			return j
		}
	}
	return nil
}

func (m *serialModel) create(t *rapid.T) {
	j := &serialJob{key: rapid.SampledFrom(m.keys).Draw(t, "key"), status: job.Waiting}
	if m.holder(j.key) == nil {
		j.status, j.holds = job.Queued, true
	}
	j.id = m.keyed(j.key)
	m.jobs = append(m.jobs, j)
}

// some returns a job with one of some statuses, or nil.
func (m *serialModel) some(t *rapid.T, statuses ...job.Status) *serialJob {
	var all []*serialJob
	for _, j := range m.jobs {
		if slices.Contains(statuses, j.status) {
			all = append(all, j)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return rapid.SampledFrom(all).Draw(t, "job")
}

// pop begins whatever run is the first in a shard: it must be of a job that may run.
func (m *serialModel) pop(t *rapid.T) {
	shard := m.keyShard(rapid.SampledFrom(m.keys).Draw(t, "key"))
	snap, err := popped(m.store.Pop(m.Context(), job.DefaultQueue, shard, -1, beginning(), []string{"T"}))
	m.Check(err)
	for _, j := range m.jobs {
		if snap != nil && snap.Info.ID == j.id {
			if j.status == job.Queued {
				j.status = job.Running
			} else if j.status != job.Terminating {
				m.Fatalf("job %s began as it was %s", j.id, j.status)
			}
			j.run = snap
		}
		if snap == nil && (j.status == job.Queued || j.status == job.Terminating && j.run == nil) && m.keyShard(j.key) == shard {
			m.Fatalf("job %s is %s and does not begin", j.id, j.status)
		}
	}
}

func (m *serialModel) keyShard(key string) int { return int(job.Hash(key) % shards) }

// end ends a run in any way.
func (m *serialModel) end(t *rapid.T) {
	var j *serialJob
	for _, one := range m.jobs {
		if one.run != nil && (j == nil || rapid.Bool().Draw(t, "another")) {
			j = one
		}
	}
	if j == nil {
		return
	}
	ends := map[statemachine.Event]job.Status{
		statemachine.Complete: job.Completed, statemachine.Fail: job.Failed, statemachine.Suspend: job.Suspended, statemachine.Requeue: job.Queued, statemachine.Backoff: job.Scheduled,
	}
	outcome := rapid.SampledFrom([]statemachine.Event{statemachine.Complete, statemachine.Fail, statemachine.Suspend, statemachine.Requeue, statemachine.Backoff}).Draw(t, "outcome")
	d := delta(j.run, outcome)
	if d.Delay = 0; outcome == statemachine.Backoff {
		d.Delay = time.Hour
	}
	to := ends[outcome]
	if j.status == job.Terminating {
		d = delta(j.run, statemachine.Shutdown)
		to = job.Terminated
	}
	lost := rapid.Bool().Draw(t, "twice")
	j.run = nil
	m.commit(d)
	m.become(j, to)
	if lost {
		m.commit(d)
	}
}

// dies lets the lease of a run end.
func (m *serialModel) dies(t *rapid.T) {
	j := m.some(t, job.Running)
	if j == nil || j.crashes == 2 { // then it is suspended for a while
		return
	}
	j.crashes++
	m.Check(m.store.Refresh(m.Context(), j.id, j.run.Token, time.Millisecond, nil))
	m.Until("its lease is over", func() bool { m.sweep(); return m.info(j.id).Status == job.Queued })
	late := delta(j.run, statemachine.Complete)
	if res := m.try(late); res.Applied != 0 {
		m.Fatalf("a commit whose lease is over holds")
	}
	j.run = nil
	m.become(j, job.Queued)
}

// write wakes a job, if it sleeps.
func (m *serialModel) write(t *rapid.T) {
	j := m.some(t, job.Suspended, job.Completed, job.Waiting, job.Queued)
	if j == nil {
		return
	}
	m.env.write(j.id, "in", "1")
	if j.status == job.Suspended || j.status == job.Completed {
		m.become(j, job.Queued)
	}
}

// insist has a job run again.
func (m *serialModel) insist(t *rapid.T) {
	if j := m.some(t, job.Failed, job.Terminated, job.Scheduled, job.Suspended, job.Completed); j != nil {
		m.Check(m.store.Apply(m.Context(), j.id, statemachine.Force))
		m.become(j, job.Queued)
	}
}

func (m *serialModel) terminate(t *rapid.T) {
	j := m.some(t, job.Queued, job.Waiting, job.Scheduled, job.Running, job.Suspended, job.Completed, job.Failed)
	if j == nil {
		return
	}
	m.Check(m.store.Apply(m.Context(), j.id, statemachine.Terminate))
	m.become(j, job.Terminating)
}

func (m *serialModel) remove(t *rapid.T) {
	j := m.some(t, job.Terminated)
	if j == nil {
		return
	}
	m.Check(m.store.Delete(m.Context(), j.id))
	m.jobs = slices.DeleteFunc(m.jobs, func(other *serialJob) bool { return other == j })
}

// check compares the store with the model.
func (m *serialModel) check(*rapid.T) {
	for _, key := range m.keys {
		holder, active, waiting := m.holder(key), 0, []*serialJob{}
		for _, j := range m.jobs {
			if j.key != key {
				continue
			}
			if got := m.info(j.id).Status; got != j.status {
				m.Fatalf("job %s of key %s is %s, want %s", j.id, key, got, j.status)
			}
			if j.status == job.Waiting {
				waiting = append(waiting, j)
			} else if !over(j.status) && j.status != job.Terminating {
				active++
			}
		}
		if active > 1 || len(waiting) > 0 && holder == nil {
			m.Fatalf("key %s: %d active, %d waiting", key, active, len(waiting))
		}
		for i, j := range waiting {
			turn, err := m.store.Turn(m.Context(), j.id)
			m.Check(err)
			m.equal("turn", turn, job.Turn{Key: key, Holder: holder.id, Before: int64(i) + 1, Behind: int64(len(waiting) - i - 1)})
		}
	}
}

// Sequential keys do what their model says, whatever ends jobs, wakes them, repeats calls or kills runs.
func TestSequentialKeysModel(t *testing.T) {
	each(t, func(e *env) {
		n := 0
		rapid.Check(e, func(t *rapid.T) {
			n++
			m := &serialModel{env: e, keys: []string{fmt.Sprint("a", n), fmt.Sprint("b", n), fmt.Sprint("c", n)}}
			t.Repeat(map[string]func(*rapid.T){
				"create": m.create, "create more": m.create, "pop": m.pop, "pop more": m.pop, "end": m.end, "end more": m.end,
				"dies": m.dies, "write": m.write, "insist": m.insist, "terminate": m.terminate, "remove": m.remove, "": m.check,
			})
			m.finish()
		})
		e.unkeyed()
	})
}

// finish ends all jobs, in the order in which they get their keys: none is left waiting.
func (m *serialModel) finish() {
	for _, j := range m.jobs {
		m.Check(m.store.Terminate(m.Context(), j.id))
		switch i := m.info(j.id); {
		case i.Status != job.Terminating:
		case j.run != nil:
			m.commit(delta(j.run, statemachine.Shutdown))
		default:
			m.env.end(j.id, statemachine.Shutdown)
		}
		m.Check(m.store.Delete(m.Context(), j.id))
	}
}
