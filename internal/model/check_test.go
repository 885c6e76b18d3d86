package model_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// check tells what is wrong with a world, and whether all is done.
func (l *lab) check(ctx context.Context, w *world, tree []*job.Info) (wrong string, end bool, err error) {
	end = w.Copy == nil
	unharmed := w.Left.Crash == l.scope.faults.Crash && w.Left.Late == l.scope.faults.Late && w.Left.Zombie == l.scope.faults.Zombie &&
		w.Left.Restart == l.scope.faults.Restart
	alive := w.alive()
	due, err := l.redis.ZRange(ctx, dueKey, 0, -1).Result()
	if err != nil {
		return "", false, err
	}
	got := map[string][]int{}
	for n, i := range tree {
		if !i.Status.Settled() {
			end = false
		}
		if slices.Contains(w.Ended, n) && i.Status != statemachine.Terminated {
			return fmt.Sprintf("job %s was terminated, and is %s", i.Name, i.Status), false, nil
		}
		if wrong := l.consistent(tree, i, due); wrong != "" {
			return wrong, false, nil
		}
		if i.Graph {
			continue
		}
		if i.Status == statemachine.Running && unharmed && !alive[i.Token] {
			return fmt.Sprintf("job %s is held by a run that nobody knows of, and no process has died", i.Name), false, nil
		}
		state, err := l.stores[0].State(ctx, i.ID, "got")
		if err != nil {
			return "", false, err
		}
		var all []int
		_ = json.Unmarshal(state["got"], &all)
		got[i.Name] = all
		next := map[int]int{}
		for _, m := range all {
			from := m / 100
			if l.scope.nodes[i.ID.Number()].Args != nil {
				break
			}
			if next[from]++; m%100 != next[from] {
				return fmt.Sprintf("job %s got %v: not each message once, and in order", i.Name, all), false, nil
			}
		}
	}
	for p := range w.Procs {
		if w.Procs[p].Call != nil || p == l.scope.engines && w.Procs[p].Next < len(l.scope.outside) {
			end = false
		}
	}
	if wrong := l.counted(w, tree, got, end); wrong != "" {
		return wrong, false, nil
	}
	return "", end, nil
}

// consistent tells what contradicts itself in what is known of a job.
func (l *lab) consistent(tree []*job.Info, i *job.Info, due []string) string {
	in, _ := i.Port(port.Input, "in")
	switch {
	case i.Status == statemachine.Failed && !l.terminates():
		return fmt.Sprintf("job %s has failed: %s", i.Name, i.Reason)
	case i.Status == statemachine.Completed && in.Waiting > 0:
		return fmt.Sprintf("job %s has completed, and %d messages wait for it", i.Name, in.Waiting)
	case (i.Status == statemachine.Queued && !i.Blocked || i.Token != "") && !slices.Contains(due, string(i.ID)):
		return fmt.Sprintf("job %s is %s, and the sweeper would not look at it", i.Name, i.Status)
	}
	for _, other := range tree {
		if other.ID == i.ID || other.Graph || other.Status.Settled() || other.Status == statemachine.Terminating {
			continue
		}
		if i.Graph && i.Status == statemachine.Completed {
			return fmt.Sprintf("the graph has completed, and job %s is %s", other.Name, other.Status)
		}
		if p, ok := outPort(&l.scope.nodes[other.ID.Number()]); ok && in.Closed && root.Nth(p.Edges[0][0].Node) == i.ID {
			return fmt.Sprintf("the port of job %s is closed, and job %s, which writes to it, is %s", i.Name, other.Name, other.Status)
		}
	}
	return ""
}

// counted wants each message that was sent along an edge, or from outside, to be in the port behind it, or read.
func (l *lab) counted(w *world, tree []*job.Info, got map[string][]int, end bool) string {
	sent := map[int]int{}
	for _, node := range l.scope.nodes {
		if p, ok := outPort(&node); ok {
			sent[p.Edges[0][0].Node] += len(got[node.Name])
		}
	}
	fromOutside := 0
	for _, i := range tree {
		in, ok := i.Port(port.Input, "in")
		if !ok || i.Graph || i.Status == statemachine.Terminated || i.Status == statemachine.Terminating {
			continue
		}
		outside := 0 // it may have read, or hold, as many more as somebody has written
		for _, m := range got[i.Name] {
			if m < 100 {
				outside++
			}
		}
		fromOutside += outside
		if in.Limit > 0 && int(in.Waiting) >= in.Limit+max(l.scope.batch, 1) {
			return fmt.Sprintf("%d messages wait for job %s, whose port holds %d: its writer was not held back", in.Waiting, i.Name, in.Limit)
		}
		have := int(in.Waiting) + len(got[i.Name])
		if want := sent[i.ID.Number()]; have < want || have > want+w.Procs[l.scope.engines].Next {
			return fmt.Sprintf("job %s got %d messages and %d wait, %d were sent", i.Name, len(got[i.Name]), in.Waiting, want)
		}
	}
	if acked := w.Procs[l.scope.engines].Acked; end && !l.terminates() && l.scope.faults.Restart == 0 && fromOutside != acked {
		return fmt.Sprintf("%d messages from outside were read, %d were sent", fromOutside, acked)
	}
	return ""
}

// terminates tells whether somebody ends jobs.
func (l *lab) terminates() bool {
	return slices.ContainsFunc(l.scope.outside, func(c call) bool { return c.Kind == "terminate" })
}
