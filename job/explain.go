package job

import (
	"strings"

	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// explain gives graphs that sleep a reason, from the jobs of their tree: nothing in an idle
// graph moves, but its inputs are open, so that it is not completed.
func explain(tree []*Info) {
	children := make(map[ID][]*Info)
	for _, i := range tree {
		children[i.Parent] = append(children[i.Parent], i)
	}
	var moves func(i *Info) bool
	moves = func(i *Info) bool {
		asleep := i.Status == statemachine.Suspended || i.Status.Settled() || i.Status == statemachine.Failed
		if !i.Graph && (!asleep || i.Blocked || !i.Next.IsZero()) {
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
			i.Reason = "idle: " + open(i)
		}
	}
}

// open says what an idle graph may wait for.
func open(i *Info) string {
	var names []string
	for _, p := range i.Ports {
		if p.Dir == port.Input && !p.Closed {
			names = append(names, p.Name)
		}
	}
	switch len(names) {
	case 0:
		return "its jobs wait for something from outside"
	case 1:
		return "its input " + names[0] + " is open"
	}
	return "its inputs " + strings.Join(names, ", ") + " are open"
}
