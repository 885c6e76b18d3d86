package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weirworks/weir/component"
	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/statemachine"
)

// because is one reason for the status of a job. Those of a higher level say why what the
// one before them waits for does not come.
type because struct {
	Job     job.ID     `json:"job"`
	Level   int        `json:"level"`
	Text    string     `json:"text"`
	Command string     `json:"command,omitempty"` // that would move it
	Since   *time.Time `json:"since,omitempty"`
	Next    *time.Time `json:"next,omitempty"` // when it goes on by itself
}

// alike is how many jobs of a graph with one status are explained.
const alike = 5

// explainer knows the jobs of a tree.
type explainer struct {
	style    term.Style
	tree     []*job.Info
	jobs     map[job.ID]*job.Info
	children map[job.ID][]*job.Info
	feeds    map[job.PortRef][]job.PortRef // ports whose edges lead to a port
	called   map[job.ID]string             // what the user calls a job
	types    []job.TypeInfo
	engines  map[string]int  // how many serve a queue
	paused   map[string]bool // queues
	locks    map[job.ID]job.LockInfo

	told    map[job.ID]bool
	reasons []because
}

// newExplainer asks for what is to be known besides the tree.
func newExplainer(ctx context.Context, store *redisstore.Store, h *job.Handle) (*explainer, error) {
	tree, err := h.Tree(ctx)
	if err != nil {
		return nil, err
	}
	e := &explainer{
		tree: tree, jobs: map[job.ID]*job.Info{}, children: map[job.ID][]*job.Info{}, feeds: map[job.PortRef][]job.PortRef{},
		called: map[job.ID]string{}, engines: map[string]int{}, paused: map[string]bool{}, told: map[job.ID]bool{}, reasons: []because{},
	}
	for _, i := range tree {
		e.jobs[i.ID] = i
		e.children[i.Parent] = append(e.children[i.Parent], i)
		for _, p := range i.Ports {
			for _, edge := range p.Edges {
				for _, end := range edge {
					e.feeds[end] = append(e.feeds[end], job.PortRef{Job: i.ID, Dir: p.Dir, Port: p.Name})
				}
			}
		}
	}
	queues, err := store.Queues(ctx)
	if err != nil {
		return nil, err
	}
	for _, q := range queues {
		e.paused[q.Name], e.engines[q.Name] = q.Paused, q.Engines
	}
	if e.locks, err = held(ctx, store, tree, h.ID()); err != nil {
		return nil, err
	}
	e.types, err = store.Types(ctx)
	return e, err
}

// say adds a reason for a job's status.
func (e *explainer) say(i *job.Info, level int, b because) {
	b.Job, b.Level = i.ID, level
	e.reasons = append(e.reasons, b)
}

// why explains a job, once.
func (e *explainer) why(i *job.Info, level int) {
	if e.told[i.ID] {
		return
	}
	e.told[i.ID] = true
	who, id := "job "+e.path(i), e.call(i)
	lock, locked := e.locks[i.ID]
	if locked {
		e.say(i, level, because{
			Text: fmt.Sprintf("%s is locked %s: it begins no run", who, lockText(lock)), Command: "weir unlock " + id + " --force",
			Since: timeOrNull(lock.Since), Next: timeOrNull(lock.Until),
		})
	}
	switch i.Status {
	case statemachine.Running:
		e.say(i, level, because{Text: fmt.Sprintf("%s has been running %s", who, e.lasting(i.Ran)), Since: timeOrNull(i.Ran)})
	case statemachine.Queued:
		if !locked || e.paused[i.Queue] { // else it waits for nothing else
			e.ready(i, level)
		}
	case statemachine.Failed:
		if i.Graph {
			e.say(i, level, because{Text: who + " failed, because of a job in it:"})
			e.below(i, level+1, func(c *job.Info) bool { return c.Status == statemachine.Failed })
			return
		}
		e.say(i, level, because{
			Text: fmt.Sprintf("%s failed %s%s: %s", who, e.style.Ago(i.Ran), tries(i), firstLine(i.Reason)), Command: "weir retry " + id, Since: timeOrNull(i.Ran),
		})
	case statemachine.Scheduled:
		text := who + " waits for its time" + e.next(i)
		if i.Tries > 0 {
			text = fmt.Sprintf("%s failed %s%s: %s; its next try is%s", who, e.style.Ago(i.Ran), tries(i), firstLine(i.Reason), strings.TrimPrefix(e.next(i), ", which is"))
		}
		e.say(i, level, because{Text: text + "; to run it now:", Command: "weir run " + id, Next: timeOrNull(i.Next)})
	case statemachine.Waiting:
		e.say(i, level, because{Text: who + " waits until the job that holds the same key lets go of it"})
	case statemachine.Terminated:
		e.say(i, level, because{Text: who + " is terminated; to make it run again:", Command: "weir run " + id + " --force"})
	case statemachine.Terminating:
		e.say(i, level, because{Text: who + " is about to end: its Shutdown has not run yet"})
		e.served(i, level+1)
	case statemachine.Completed:
		e.completed(i, level)
	default:
		e.asleep(i, level)
	}
}

// ready explains a queued job.
func (e *explainer) ready(i *job.Info, level int) {
	who := "job " + e.path(i)
	switch {
	case e.paused[i.Queue]:
		e.say(i, level, because{
			Text:    fmt.Sprintf("%s has been ready %s, but its queue %s is paused:", who, e.lasting(i.Queued), i.Queue),
			Command: "weir queue resume " + i.Queue, Since: timeOrNull(i.Queued),
		})
	case !i.Next.IsZero():
		e.say(i, level, because{
			Text: fmt.Sprintf("%s runs as often as its type may (%s): it goes on%s", who, i.Reason, e.in(i.Next)), Next: timeOrNull(i.Next),
		})
	default:
		e.say(i, level, because{Text: fmt.Sprintf("%s has been ready %s and waits for an engine", who, e.lasting(i.Queued)), Since: timeOrNull(i.Queued)})
		e.served(i, level+1)
	}
}

// served tells whether there are engines for a job.
func (e *explainer) served(i *job.Info, level int) {
	engines := e.engines[i.Queue]
	command := ""
	if docs, err := component.Catalogue(); err == nil && slices.ContainsFunc(docs, func(d component.Doc) bool { return d.Type == i.Type }) {
		command = "weir worker"
		if i.Queue != job.DefaultQueue {
			command += " --queue " + i.Queue
		}
	}
	known := slices.ContainsFunc(e.types, func(t job.TypeInfo) bool { return t.Type == i.Type && t.Queue == i.Queue })
	program := "the program that has it"
	if command != "" {
		program = "one"
	}
	switch {
	case !known:
		e.say(i, level, because{Text: fmt.Sprintf("no engine has ever registered type %s for queue %s: start %s", i.Type, i.Queue, program), Command: cmp.Or(command, "weir types")})
	case engines == 0:
		e.say(i, level, because{Text: fmt.Sprintf("no engine serves queue %s now: start %s", i.Queue, program), Command: command})
	case engines == 1:
		e.say(i, level, because{Text: fmt.Sprintf("1 engine serves queue %s: it takes the job when it has a slot free, if it has type %s", i.Queue, i.Type)})
	default:
		e.say(i, level, because{Text: fmt.Sprintf("%d engines serve queue %s: one with type %s takes the job when it has a slot free", engines, i.Queue, i.Type)})
	}
}

// completed explains a job that has done its work: what would wake it, and what of its work
// nobody has fetched.
func (e *explainer) completed(i *job.Info, level int) {
	e.say(i, level, because{Text: "job " + e.path(i) + " is completed: it has worked on all it got"})
	for _, p := range i.Ports {
		switch {
		case p.Name == port.Any:
		case p.Dir == port.Output && p.Waiting > 0:
			e.say(i, level, because{
				Text: fmt.Sprintf("%s in its port %s for somebody to read:", wait(p.Waiting), p.Name), Command: fmt.Sprintf("weir read %s %s --all", e.call(i), p.Name),
			})
		case p.Dir == port.Input && !p.Closed && !p.Fed && !i.Graph:
			e.say(i, level, because{
				Text: fmt.Sprintf("a message to its port %s would wake it:", p.Name), Command: fmt.Sprintf("weir send %s %s MESSAGE", e.call(i), p.Name),
			})
		}
	}
}

// asleep tells what a suspended job may wait for.
func (e *explainer) asleep(i *job.Info, level int) {
	who := "job " + e.path(i)
	switch {
	case i.Blocked:
		e.blocked(i, level)
		return
	case i.Graph:
		e.graph(i, level)
		return
	}
	before := len(e.reasons)
	if !i.Next.IsZero() {
		e.say(i, level, because{Text: fmt.Sprintf("%s waits for a timer%s; to run it now:", who, e.next(i)), Command: "weir run " + e.call(i), Next: timeOrNull(i.Next)})
	}
	for _, p := range i.Ports {
		if p.Dir == port.Input && !p.Closed && p.Name != port.Any {
			e.empty(i, p, level)
		}
	}
	for _, c := range e.children[i.ID] {
		if !c.Status.Settled() {
			e.say(i, level, because{Text: fmt.Sprintf("%s may wait for its child %s, which is %s", who, c.Name, c.Status)})
			e.why(c, level+1)
		}
	}
	if len(e.reasons) == before {
		e.say(i, level, because{Text: fmt.Sprintf("%s sleeps%s until somebody asks for a run", who, e.slept(i)), Command: "weir run " + e.call(i)})
	}
}

// blocked explains a job that rests because it has filled a port.
func (e *explainer) blocked(i *job.Info, level int) {
	who := "job " + e.path(i)
	reached := e.reaches(i)
	full := 0
	for _, ref := range reached {
		at := e.jobs[ref.Job]
		p, _ := at.Port(ref.Dir, ref.Port)
		if p.Limit == 0 || p.Waiting < int64(p.Limit) {
			continue
		}
		full++
		e.say(i, level, because{
			Text:  fmt.Sprintf("%s rests%s: port %s of job %s is full, %s of at most %d", who, e.slept(i), ref.Port, e.path(at), wait(p.Waiting), p.Limit),
			Since: timeOrNull(i.Ran),
		})
		e.why(at, level+1)
	}
	if full == 0 { // it has room again by now, or is not of this tree
		e.say(i, level, because{Text: fmt.Sprintf("%s rests%s: %s", who, e.slept(i), i.Reason), Since: timeOrNull(i.Ran)})
	}
}

// empty explains what a job waits for at an In port that is open.
func (e *explainer) empty(i *job.Info, p job.PortInfo, level int) {
	text := fmt.Sprintf("job %s waits%s for messages on port %s", e.path(i), e.slept(i), p.Name)
	if p.Waiting > 0 {
		text = fmt.Sprintf("job %s waits%s for more messages than the %d on its port %s", e.path(i), e.slept(i), p.Waiting, p.Name)
	}
	send := fmt.Sprintf("weir send %s %s", e.call(i), p.Name)
	switch {
	case !p.Fed && len(p.Channels) > 0:
		e.say(i, level, because{Text: fmt.Sprintf("%s, which come from channel %s", text, strings.Join(p.Channels, ", ")), Since: timeOrNull(i.Ran)})
	case !p.Fed && p.Waiting == 0 && p.Default == nil:
		e.say(i, level, because{Text: text + ", which nobody is wired to:", Command: send + " MESSAGE", Since: timeOrNull(i.Ran)})
		e.say(i, level, because{Text: "or, if nothing more is to come:", Command: send + " --close"})
	case p.Sources > 0:
		e.fed(i, p, level, text)
	}
}

// fed explains why nothing comes to a port along its wires.
func (e *explainer) fed(i *job.Info, p job.PortInfo, level int, text string) {
	var from []*job.Info
	var names, inputs []string
	for _, ref := range e.sources(job.PortRef{Job: i.ID, Dir: port.Input, Port: p.Name}) {
		at := e.jobs[ref.Job]
		q, _ := at.Port(ref.Dir, ref.Port)
		switch {
		case q.Closed:
		case ref.Dir == port.Input: // of a graph that nobody feeds from inside
			inputs = append(inputs, fmt.Sprintf("weir send %s %s", e.call(at), ref.Port))
			names = append(names, fmt.Sprintf("input %s of %s", ref.Port, e.path(at)))
		default:
			from = append(from, at)
			names = append(names, e.path(at))
		}
	}
	if len(names) > alike {
		names = append(names[:alike], fmt.Sprintf("%d more", len(names)-alike))
	}
	if len(names) > 0 {
		text += ", which come from " + joinedBy(names, " and ")
	}
	e.say(i, level, because{Text: text, Since: timeOrNull(i.Ran)})
	for _, send := range inputs {
		e.say(i, level+1, because{Text: "that input is open: it waits for messages from outside,", Command: send + " MESSAGE"})
		e.say(i, level+1, because{Text: "or, if nothing more is to come:", Command: send + " --close"})
	}
	e.several(from, level+1)
}

// graph explains a graph that is not settled.
func (e *explainer) graph(i *job.Info, level int) {
	who := "job " + e.path(i)
	if strings.HasPrefix(i.Reason, "idle") {
		e.say(i, level, because{Text: who + " is " + i.Reason})
		for _, p := range i.Ports {
			if p.Dir == port.Input && !p.Closed {
				send := fmt.Sprintf("weir send %s %s", e.call(i), p.Name)
				e.say(i, level, because{Text: "to give it more to do:", Command: send + " MESSAGE"})
				e.say(i, level, because{Text: "or, if nothing more is to come:", Command: send + " --close"})
			}
		}
		return
	}
	e.say(i, level, because{Text: who + " is not completed, because of jobs in it:"})
	before := len(e.reasons)
	// First those that may do something, or cannot: others wait for them.
	e.below(i, level+1, func(c *job.Info) bool { return c.Status != statemachine.Suspended || c.Blocked || !c.Next.IsZero() })
	if len(e.reasons) == before {
		e.below(i, level+1, func(*job.Info) bool { return true })
	}
}

// below explains the jobs in a graph, and in those in it, that concern it and are not settled.
func (e *explainer) below(i *job.Info, level int, concerns func(*job.Info) bool) {
	var list []*job.Info
	var collect func(id job.ID)
	collect = func(id job.ID) {
		for _, c := range e.children[id] {
			switch {
			case c.Status.Settled():
			case c.Graph:
				collect(c.ID)
			case concerns(c):
				list = append(list, c)
			}
		}
	}
	collect(i.ID)
	e.several(list, level)
}

// several explains jobs: of many that have the same status, some.
func (e *explainer) several(list []*job.Info, level int) {
	same := make(map[statemachine.Status]int)
	for _, c := range list {
		if e.told[c.ID] {
			continue
		}
		if same[c.Status]++; same[c.Status] <= alike {
			e.why(c, level)
		}
	}
	for _, status := range statemachine.Statuses() {
		if more := same[status] - alike; more > 0 {
			e.reasons = append(e.reasons, because{
				Job: e.tree[0].ID, Level: level, Text: fmt.Sprintf("and %s more jobs that are %s:", term.Number(int64(more)), status), Command: "weir tree " + e.call(e.tree[0]),
			})
		}
	}
}
