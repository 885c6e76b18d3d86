package worker

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/weirworks/weir/internal/failpoint"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// Run batching: a job that has more to read, one message a run, runs again at once, on what its
// last run left, and so do those that are chained to it. All their runs go into one commit,
// in which each job of the chain has one delta. A run that cannot be added, because it failed or
// ended its job, is committed by itself, behind those before it. So is one that needs the store.

// repeatRuns and repeatBytes are how many runs of a chain one commit may have, and about how many bytes it
// may write: other commits of the shard wait for it.
const (
	repeatRuns  = 120
	repeatBytes = 128 << 10
	// fewRuns: if fewer runs than this come before one that needs the store, runs of its type are not batched.
	fewRuns = 4
)

// rooms is how many messages a commit of a job may write to each of its ports, as far as an engine knows: of others than these it knows
// nothing.
type rooms struct {
	mu sync.Mutex
	recent[map[job.PortRef]int]
}

// manyPorts is how many ports of a job an engine knows.
const manyPorts = 16

// put notes that the next commit of a job may write n messages to any of some ports.
func (r *rooms) put(id job.ID, ports []job.PortRef, n int, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known, _ := r.get(id)
	if known == nil || len(known) > manyPorts {
		known = map[job.PortRef]int{}
	}
	for _, p := range ports {
		known[p] = n
	}
	r.set(id, known, now)
}

// fit tells whether more than n messages, which were written in all, fit into each of the ports that the last run of a job wrote to.
func (r *rooms) fit(id job.ID, last *store.Delta, n int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	known, _ := r.get(id)
	return !slices.ContainsFunc(last.Writes, func(w store.Write) bool { return len(w.Items) > 0 && n >= known[target(w)] })
}

func target(w store.Write) job.PortRef { return job.PortRef{Job: w.Job, Dir: w.Dir, Port: w.Port} }

// targets returns the ports that the runs of a commit have written to.
func (r *ran) targets() (ports []job.PortRef) {
	add := func(all []store.Write) {
		for _, w := range all {
			if to := target(w); len(w.Items) > 0 && !slices.Contains(ports, to) {
				ports = append(ports, to)
			}
		}
	}
	for _, p := range r.sum.Before {
		add(p.Writes)
	}
	add(r.sum.Writes)
	return ports
}

// repeat runs a chain again for as long as its first job has more to read, and returns what is to be
// committed: the chain, with all these runs; or another chain of that job, if the first one is
// committed; or nothing, if the job is lost.
func (t *turn) repeat(row []*ran, leads bool) (next []*ran, leadsOn bool) {
	for since := t.now; t.repeats(row, leads) && t.now.Sub(since) < shortRun; {
		re := t.again(row, leads)
		if re.first == nil {
			return nil, false
		}
		if re.row == nil {
			if !re.settled && !t.settleBefore(row, leads, re.first.snap.Token) {
				return nil, false
			}
			return t.behind(row, re.first, leads)
		}
		for n, r := range re.row {
			if n == len(row) {
				row = append(row, r)
			} else {
				row[n].add(r)
			}
		}
		failpoint.Hit(failpoint.MidBatch)
	}
	return row, leads
}

// behind returns the chain of a run whose predecessors have been committed.
func (t *turn) behind(row []*ran, first *ran, leads bool) (next []*ran, leadsOn bool) {
	snap := *first.snap // which the run may still be asked for
	snap.Info.Version++
	first.snap, first.told = &snap, false
	first.read += row[0].read // they began with one snapshot
	if first.after() == nil {
		next, leads, _ = t.chain([]*ran{first}) // a job that ended may lead to another one
		return next, leads
	}
	if len(row) > 1 && first.wrote > 0 {
		t.suspended.take(row[1].snap.Info.ID, t.now) // this wakes it
	}
	return []*ran{first}, leads
}

// repeats tells whether a chain may run once more before it is committed.
func (t *turn) repeats(row []*ran, leads bool) bool {
	head, end, size := row[0], row[len(row)-1], 0
	s, k := head.snap, t.registry().kinds[head.snap.Info.Type]
	if head.run == nil || !k.batches() || s.Loop || s.Info.Tries > 0 || s.Info.Crashes > 0 ||
		k.options.MaxRunsPerMinute > 0 && s.Rate >= k.options.MaxRunsPerMinute || cost(row, false)+len(row) > repeatRuns || !t.room(cost(row, leads)) {
		return false
	}
	if head.delta.Outcome != statemachine.Requeue || !head.tookSome() || !head.leftSome() || head.after() == nil {
		return false
	}
	for n, r := range row {
		size += r.size
		if r.took > shortRun {
			return false
		}
		if n == 0 {
			continue
		}
		p, _ := r.snap.Info.Port(port.Input, r.sum.Speculation.Port)
		if p.Limit > 0 && r.sum.Speculation.Seen >= p.Limit {
			return false // if the speculation fails, all of it will wait there
		}
		if next := r.after(); r.delta.Outcome != statemachine.Suspend || next == nil || len(next.In) > 0 {
			return false
		}
	}
	return size < repeatBytes && t.rooms.fit(end.snap.Info.ID, end.delta, end.wrote)
}

// batches tells whether runs of a job of the type may follow each other in one commit.
func (k *kind) batches() bool {
	return !k.options.CommitEachRun && !k.rated.Load() && !k.alone.Load()
}

// tookSome tells whether the run has read messages, all of them of its job.
func (r *ran) tookSome() bool {
	others := func(t store.Take) bool { return t.Job != "" }
	return len(r.delta.Takes) > 0 && !slices.ContainsFunc(r.delta.Takes, others)
}

// leftSome tells whether the run has left messages, none of which are out of reach.
func (r *ran) leftSome() bool {
	some := false
	for _, in := range r.run.ins.all {
		if in.left > 0 && len(in.items) == 0 {
			return false
		}
		some = some || in.left > 0
	}
	return some
}

// rerun is what came of running a chain again.
type rerun struct {
	first   *ran   // the run of its first job; nil: the job is lost
	row     []*ran // all runs, if they can be added to the chain
	settled bool   // the chain was committed before the first run ended
}

// again runs a chain once more.
func (t *turn) again(row []*ran, leads bool) rerun {
	snap := row[0].handOn()
	snap.Token, snap.Info.Status = job.RunToken(t.id), statemachine.Running
	first, settled := t.onRow(row, leads, snap)
	re := rerun{first: first, settled: settled}
	if first != nil && !settled && first.after() != nil {
		re.row = t.follow(row, first)
	}
	return re
}

// onRow runs the first job of a chain again. If that needs the store, or takes long, the chain is
// committed before.
func (t *turn) onRow(row []*ran, leads bool, snap *store.Snapshot) (first *ran, settled bool) {
	var mu sync.Mutex
	over, lost := false, false
	first = t.execute(snap, time.Time{}, func() error {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case over:
			return errOver
		case settled:
			return nil
		}
		if lost = lost || !t.settleBefore(row, leads, snap.Token); lost {
			t.leaseKeeper.lose()
			return fmt.Errorf("%w: what went before this run could not be committed", job.ErrFenced)
		}
		settled = true
		return nil
	})
	mu.Lock()
	defer mu.Unlock()
	if over = true; lost {
		return nil, false
	}
	if first != nil && first.run != nil && first.run.asked.Load() && row[0].runs() < fewRuns {
		t.registry().kinds[snap.Info.Type].alone.Store(true)
	}
	return first, settled
}

// settleBefore commits a chain whose first job continues under a new token.
func (t *turn) settleBefore(row []*ran, leads bool, token string) bool {
	d := row[0].sum
	d.Outcome, d.Next, d.Lease, d.Leads = store.Checkpoint, token, t.cfg.Lease, true
	begun := time.Now()
	t.leaseKeeper.change(token)
	if t.settle(chained{runs: row, leads: leads}, store.Begin{}, false).Applied == 0 {
		return false
	}
	t.leaseKeeper.changed(begun)
	return true
}

// follow runs the other jobs of a chain again, or a job to which the chain leads for the first time. It
// returns nothing if these runs cannot be added to the chain.
func (t *turn) follow(row []*ran, first *ran) []*ran {
	runs := []*ran{first}
	for n := 0; ; n++ {
		last, behind := runs[n], n+1 < len(row)
		to, items, closes, ok := last.leadsTo()
		var s sleeper
		var token string
		switch {
		case behind && last.wrote == 0 && !plain(last.delta):
			return nil
		case behind && last.wrote == 0, !behind && (!ok || row[n].wrote > 0 || n+1 == rowRuns):
			return runs
		case behind && (!ok || row[n+1].snap.Info.ID != to.Job || row[n+1].sum.Speculation.Port != to.Port):
			return nil
		case behind:
			s = sleeper{snap: row[n+1].handOn(), last: row[n+1].sum.Speculation.Last}
			token = row[n+1].sum.Token // which their commit has
		default:
			s, _ = t.suspended.take(to.Job, t.now)
			token = job.RunToken(t.id)
		}
		var next *ran
		if s.snap != nil {
			next = t.speculate(row, s, token, to.Port, items, closes)
		}
		if next == nil {
			if behind {
				return nil
			}
			return runs
		}
		runs = append(runs, next)
		failpoint.Hit(failpoint.MidChain)
	}
}

// runs returns how many runs they are.
func (r *ran) runs() int { return 1 + len(r.sum.Before) }

// add adds the next run of the same job.
func (r *ran) add(next *ran) {
	sum, d := r.sum, *next.delta
	sum.Before = append(sum.Before, store.Part{Writes: sum.Writes, Entry: sum.Entry, Log: sum.Log})
	d.Before, d.Token = sum.Before, sum.Token
	d.Takes = joined(sum.Takes, d.Takes)
	d.Wakes = append(sum.Wakes, d.Wakes...)
	d.Woken, d.Looked = max(sum.Woken, d.Woken), append(sum.Looked, d.Looked...)
	d.Released = append(sum.Released, d.Released...)
	d.Progress = cmp.Or(d.Progress, sum.Progress)
	overlay(sum, &d)
	if sum.Speculation != nil {
		g := *sum.Speculation
		g.Seen += d.Speculation.Seen
		d.Speculation = &g
	}
	*sum = d // which was the first delta
	*r = ran{
		snap: next.snap, run: next.run, delta: next.delta, took: max(r.took, next.took), sum: sum,
		read: r.read + next.read, wrote: r.wrote + next.wrote,
		bytes: r.bytes + next.bytes, size: r.size + next.size,
	}
}

// joined returns what two runs that follow each other take, together.
func joined(takes, more []store.Take) []store.Take {
	for _, t := range more {
		i := slices.IndexFunc(takes, func(o store.Take) bool { return o.Dir == t.Dir && o.Port == t.Port })
		if i < 0 {
			takes = append(takes, t)
		} else {
			takes[i].N += t.N
		}
	}
	return takes
}

// overlay gives a delta also the changes of state of the one before it.
func overlay(before, d *store.Delta) {
	if len(before.Set)+len(before.Unset) == 0 {
		return
	}
	set, unset := before.Set, slices.Clone(d.Unset)
	for _, k := range d.Unset {
		delete(set, k)
	}
	if set == nil {
		set = d.Set
	} else {
		maps.Copy(set, d.Set)
	}
	for _, k := range before.Unset {
		if _, ok := d.Set[k]; !ok && !slices.Contains(unset, k) {
			unset = append(unset, k)
		}
	}
	d.Set, d.Unset = set, unset
}
