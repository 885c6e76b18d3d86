// Package suite runs cases alternately, several times, and makes medians and ratios of what
// they measured.
package suite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/weirworks/weir/bench/internal/lab"
)

// Suite is what to run, and how often.
type Suite struct {
	Cases       []lab.Case
	Size        lab.Size
	Rounds      int
	Concurrency int
	Fsync       string            // appendfsync of each Redis; "" for no persistence
	Absent      map[string]string // systems that were asked for and cannot run: why
	Progress    io.Writer
}

// Workloads are the names of the workloads of some cases, in their order.
func Workloads(cases []lab.Case) []string {
	var names []string
	for _, c := range cases {
		if !slices.Contains(names, c.Workload) {
			names = append(names, c.Workload)
		}
	}
	return names
}

// Run runs all cases. Those of a workload take turns, and each trial has a fresh Redis. A
// case with a wrong result ends the suite.
func (s Suite) Run(ctx context.Context) (*Results, error) {
	res := &Results{Absent: s.Absent}
	for _, workload := range Workloads(s.Cases) {
		cases := slices.DeleteFunc(slices.Clone(s.Cases), func(c lab.Case) bool { return c.Workload != workload })
		for round := range s.Rounds {
			for i := range cases {
				c := cases[(i+round)%len(cases)] // nobody is always the first
				fmt.Fprintf(s.Progress, "%s, %s, round %d of %d: ", workload, c.System, round+1, s.Rounds)
				figures, err := s.trial(ctx, c)
				if err != nil {
					fmt.Fprintln(s.Progress, "failed")
					return nil, fmt.Errorf("%s of %s: %w", workload, c.System, err)
				}
				fmt.Fprintln(s.Progress, describe(figures))
				res.add(c.System, figures)
			}
		}
	}
	res.finish()
	return res, nil
}

// trial runs a case once.
func (s Suite) trial(ctx context.Context, c lab.Case) (figures []lab.Figure, err error) {
	// What the trial before left in memory is not to be collected at the cost of this one.
	runtime.GC()
	debug.FreeOSMemory()
	ctx, cancel := context.WithTimeoutCause(ctx, s.Size.Patience, fmt.Errorf("it took longer than %s", s.Size.Patience))
	defer cancel()
	start := lab.StartRedis
	if c.Cluster {
		start = lab.StartCluster
	}
	server, err := start(ctx, cmp.Or(c.Fsync, s.Fsync))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	return c.Run(ctx, &lab.Lab{Redis: server, Size: s.Size, Concurrency: s.Concurrency})
}

func describe(figures []lab.Figure) string {
	var parts []string
	for _, f := range figures {
		parts = append(parts, fmt.Sprintf("%s %s", round(f.Value), f.Unit))
	}
	return strings.Join(parts, ", ")
}
