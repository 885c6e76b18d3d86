package model_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// does is what a job does, as its args: it makes messages, or passes on what it gets, or keeps it.
type does struct {
	Make int `json:"make,omitempty"`
}

// seen is what a process knows of a run, or of a job that sleeps.
type seen struct {
	ID       job.ID
	Token    string
	Shutdown bool
	Version  int64
	Touched  int64
	Last     string
	State    map[string]json.RawMessage
	In       store.Inbox
	Closed   bool // no more messages will come than those in In
}

// hear is what a process does when it has heard: each way is one way to go on.
func (l *lab) hear(p proc, n int, c *call, re heard) (all []proc) {
	p.Call = nil
	if n == l.scope.engines {
		switch {
		case errors.Is(re.refused, job.ErrFull):
			p.Next-- // it tries again
		case re.refused == nil && c.Kind == "write":
			p.Acked++
		}
		return []proc{p}
	}
	l.learn(&p, c, re)
	if len(re.begun) == 0 {
		return []proc{p}
	}
	run := sight(re.begun[0])
	delete(p.Asleep, run.ID)
	if l.scope.chain {
		for _, behind := range re.begun[0].Row {
			p.Asleep[behind.Info.ID] = sight(behind)
		}
	}
	d, sends := l.run(run)
	tx, runs := store.Tx{Deltas: []store.Delta{d}}, []*seen{run}
	for {
		one := p
		one.Call = &call{Kind: "step", Token: newToken(), Txs: []store.Tx{tx}, Runs: runs}
		all = append(all, one)
		next, more, passed, ok := l.chained(&p, d, sends)
		if !ok {
			return all
		}
		d, sends = more, passed
		tx.Deltas, runs = append(slices.Clone(tx.Deltas), more), append(slices.Clone(runs), next)
	}
}

// learn notes which jobs sleep behind a commit, as far as the process can know.
func (l *lab) learn(p *proc, c *call, re heard) {
	if !l.scope.chain {
		return
	}
	p.Asleep = maps.Clone(p.Asleep)
	if p.Asleep == nil {
		p.Asleep = map[job.ID]*seen{}
	}
	if len(re.results) == 0 {
		return
	}
	for k, d := range c.Txs[0].Deltas {
		delete(p.Asleep, d.Job)
		if k >= re.results[0].Applied || d.Outcome != statemachine.Suspend {
			continue
		}
		was := *c.Runs[k]
		was.Version, was.Last, was.Token, was.State = was.Version+1, d.Token, "", d.Set
		was.In = store.Inbox{Port: "in", Head: was.In.Head + int64(len(was.In.Items))}
		p.Asleep[d.Job] = &was
	}
}

func sight(s *store.Snapshot) *seen {
	r := &seen{ID: s.Info.ID, Token: s.Token, Shutdown: s.Shutdown, Version: s.Info.Version, Touched: s.Touched, Last: s.Info.Last, State: s.State, In: s.In.Of("in")}
	if in, ok := s.Info.Port(port.Input, "in"); ok {
		r.Closed = in.Closed
		if len(r.In.Items) == 0 {
			r.In.Head = in.Total
		}
	}
	return r
}

// run is the code of the jobs: what a run of one commits.
func (l *lab) run(s *seen) (d store.Delta, sends []json.RawMessage) {
	d = store.Delta{Job: s.ID, Token: s.Token, Set: map[string]json.RawMessage{}}
	if s.Shutdown {
		d.Outcome = statemachine.Shutdown
		return d, nil
	}
	node := l.scope.nodes[s.ID.Number()]
	var what does
	_ = json.Unmarshal(node.Args, &what)
	var got []int
	_ = json.Unmarshal(s.State["got"], &got)
	_, passes := outPort(&node)
	if what.Make > 0 {
		got = append(got, len(got)+1)
		sends = append(sends, json.RawMessage(fmt.Sprint(s.ID.Number()*100+len(got))))
		d.Outcome = statemachine.Requeue
		if len(got) >= what.Make {
			d.Outcome = statemachine.Complete
		}
	} else {
		box := s.In
		for _, item := range box.Items {
			var m int
			_ = json.Unmarshal(item, &m)
			got = append(got, m)
			if passes {
				sends = append(sends, item)
			}
		}
		if len(box.Items) > 0 {
			d.Takes = []store.Take{{Dir: port.Input, Port: "in", Head: box.Head, N: len(box.Items)}}
		}
		d.Outcome = statemachine.Suspend
		switch {
		case box.Len > len(box.Items):
			d.Outcome = statemachine.Requeue
		case s.Closed:
			d.Outcome = statemachine.Complete
		}
	}
	raw, _ := json.Marshal(got)
	d.Set["got"] = raw
	if len(sends) > 0 {
		d.Writes = []store.Write{{Dir: port.Output, Port: "out", Items: sends}}
	}
	if d.Outcome == statemachine.Complete && passes {
		d.Closes = []string{"out"}
	}
	return d, sends
}

func outPort(n *job.Node) (job.Port, bool) {
	for _, p := range n.Ports {
		if p.Dir == port.Output && len(p.Edges) > 0 {
			return p, true
		}
	}
	return job.Port{}, false
}

// chained is a run of the job behind, on what is not committed yet, if the process believes that this one sleeps.
func (l *lab) chained(p *proc, d store.Delta, sends []json.RawMessage) (*seen, store.Delta, []json.RawMessage, bool) {
	node := l.scope.nodes[d.Job.Number()]
	o, ok := outPort(&node)
	if !ok || len(sends) == 0 {
		return nil, store.Delta{}, nil, false
	}
	was := p.Asleep[root.Nth(o.Edges[0][0].Node)]
	if was == nil || was.Closed {
		return nil, store.Delta{}, nil, false
	}
	run := *was
	run.Token = newToken()
	run.In = store.Inbox{Port: "in", Head: was.In.Head, Len: len(sends), Items: sends}
	closes := len(d.Closes) > 0 && l.scope.nodes[run.ID.Number()].Ports[0].Sources == 1
	run.Closed = closes
	more, passed := l.run(&run)
	more.Speculation = &store.Speculation{Version: was.Version, Touched: was.Touched, Last: was.Last, Port: "in", Closed: closes, Seen: len(sends), Limit: -1}
	return &run, more, passed, true
}
