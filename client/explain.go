package client

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// explain gives graphs that sleep a reason, from the jobs of their tree: nothing in an idle
// graph moves, but its inputs are open, so that it is not completed.
func explain(tree []*job.Info) {
	children := make(map[job.ID][]*job.Info)
	for _, i := range tree {
		children[i.Parent] = append(children[i.Parent], i)
	}
	var moves func(i *job.Info) bool
	moves = func(i *job.Info) bool {
		suspended := i.Status == statemachine.Suspended || i.Status.Settled() || i.Status == statemachine.Failed
		if !i.Graph && (!suspended || i.Blocked || !i.Next.IsZero()) {
			return true
		}
		for _, c := range children[i.ID] {
			if moves(c) {
				return true
			}
		}
		return false
	}
	for _, i := range tree {
		if i.Graph && i.Status == statemachine.Suspended && i.Reason == "" && !moves(i) {
			i.Reason = "idle: " + open(i, children)
		}
	}
}

// open says what an idle graph may wait for.
func open(i *job.Info, children map[job.ID][]*job.Info) string {
	var names []string
	for _, p := range i.Ports {
		if p.Dir == port.Input && !p.Closed {
			names = append(names, p.Name)
		}
	}
	switch len(names) {
	case 0:
		return suspended(i, children)
	case 1:
		return "its input " + names[0] + " is open"
	}
	return "its inputs " + strings.Join(names, ", ") + " are open"
}

// suspended says what the jobs of an idle graph may wait for that has no open inputs.
func suspended(graph *job.Info, children map[job.ID][]*job.Info) string {
	text := "its jobs sleep until somebody asks for a run of them"
	for todo := children[graph.ID]; len(todo) > 0; todo = todo[1:] {
		i := todo[0]
		todo = slices.Concat(todo, children[i.ID])
		if i.Graph || i.Status != statemachine.Suspended {
			continue
		}
		for _, p := range i.Ports {
			switch {
			case p.Dir != port.Input || p.Name == port.Any:
			case p.Closed && p.Waiting > 0:
				return fmt.Sprintf("its job %s sleeps, with %s of its closed port %s unread", i.Name, counted(p.Waiting), p.Name)
			case !p.Closed && !p.Fed:
				text = "its jobs wait for something from outside"
			}
		}
	}
	return text
}

func counted(messages int64) string {
	if messages == 1 {
		return "1 message"
	}
	return fmt.Sprintf("%d messages", messages)
}
