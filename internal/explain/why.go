// Package explain says in words what jobs wait for and what their runs did.
package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weirworks/weir/internal/delivery"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/trigger"
)

// Because is one reason for the status of a job. Those of a higher level say why what the
// one before them waits for does not come.
type Because struct {
	Job     job.ID    `json:"job"`
	Level   int       `json:"level"`
	Text    string    `json:"text"`
	Command string    `json:"command,omitempty"` // that would move it
	Since   time.Time `json:"since,omitzero"`
	Next    time.Time `json:"next,omitzero"` // when it goes on by itself
}

// Tree knows the jobs of a tree at one moment. What it is not told, it leaves out.
type Tree struct {
	// Most is how many of the jobs of a graph that have the same status are explained; zero
	// means all.
	Most int
	// ISO writes times as RFC 3339, rather than how long ago they were.
	ISO bool
	// Alias is what texts call the root, in place of its name. Empty: it has none, or that is not known.
	Alias string
	// Called is what commands call a job instead of its ID.
	Called map[job.ID]string
	// Engines is how many engines serve a queue. Nil: not known.
	Engines map[string]int
	// Pending is how many jobs of a queue are ready. Nil: not known.
	Pending map[string]int
	// Living are the engines that live. Nil: not known.
	Living []store.EngineInfo
	// Paused are queues of which nothing is begun.
	Paused map[string]bool
	// Locks keep jobs from running.
	Locks map[job.ID]job.LockInfo
	// Poison returns the message that may be to blame for the last failed run of a job, if it still waits. Nil: not known.
	Poison func(i *job.Info) (m Poison, ok bool)
	// Stack returns the stack of the last failed run of a job, if it panicked. Nil: not known.
	Stack func(i *job.Info) string
	// Limit returns how a limit of runs at once, or a rate, is used. Nil: not known.
	Limit func(name string) (redisstore.LimitInfo, bool)
	// Turn returns the place of a job's tree among those with its sequential key. Nil: not known.
	Turn func(i *job.Info) (turn job.Turn, ok bool)
	// Trigger returns what is known of a trigger. Nil: not known.
	Trigger func(i *job.Info) (s *trigger.Status, ok bool)
	// Outcome returns what came of the last payload of a handler's job. Nil: not known.
	Outcome func(i *job.Info) (o Outcome, ok bool)
	// Other says why a job of another tree has its status. Nil: not known.
	Other func(id job.ID) []Because
	// Types are those that engines have registered.
	Types []job.TypeInfo
	// Components are the types of which weir worker runs jobs.
	Components []string

	style    term.Style
	tree     []*job.Info
	jobs     map[job.ID]*job.Info
	children map[job.ID][]*job.Info
	feeds    map[job.PortRef][]job.PortRef // ports whose edges lead to a port

	told    map[job.ID]bool
	reasons []Because
}

// NewTree returns what explains the jobs of a tree.
func NewTree(tree []*job.Info, now time.Time) *Tree {
	t := &Tree{
		style: term.Style{Now: now}, tree: tree,
		jobs: map[job.ID]*job.Info{}, children: map[job.ID][]*job.Info{}, feeds: map[job.PortRef][]job.PortRef{},
	}
	for _, i := range tree {
		t.jobs[i.ID] = i
		t.children[i.Parent] = append(t.children[i.Parent], i)
		for _, p := range i.Ports {
			for _, edge := range p.Edges {
				for _, end := range edge {
					t.feeds[end] = append(t.feeds[end], job.PortRef{Job: i.ID, Dir: p.Dir, Port: p.Name})
				}
			}
		}
	}
	return t
}

// Why says why a job has its status and what would move it; nothing of a job that is not in
// the tree.
func (t *Tree) Why(id job.ID) []Because {
	t.style.ISO, t.told, t.reasons = t.ISO, map[job.ID]bool{}, []Because{}
	if i := t.jobs[id]; i != nil {
		t.why(i, 0)
		t.dead(i)
	}
	return t.reasons
}

// dead tells of the dead letters of a job and of those below it.
func (t *Tree) dead(i *job.Info) {
	told, more := 0, int64(0)
	var look func(i *job.Info)
	look = func(i *job.Info) {
		if n := DeadLetters(i); n > 0 && t.Most > 0 && told == t.Most {
			more += n
		} else if n > 0 {
			told++
			t.deadLetters(i, n)
		}
		for _, c := range t.children[i.ID] {
			look(c)
		}
	}
	look(i)
	if more > 0 {
		t.say(i, 0, Because{Text: fmt.Sprintf("and %s more of other jobs in it:", term.Number(more)), Command: "weir dead list " + t.Call(i)})
	}
}

// deadLetters tells of the dead letters that a job holds, and what can be done with them.
func (t *Tree) deadLetters(i *job.Info, n int64) {
	text, list := fmt.Sprintf("job %s could not handle some messages: %s in its port %s", t.Path(i), lie(n), job.ErrorsPort), "weir dead list "+t.Call(i)
	if !ended(i) {
		t.say(i, 0, Because{Text: text + ". Requeue or discard them before its inputs end:", Command: list})
		return
	}
	t.say(i, 0, Because{Text: text + ":", Command: list})
	t.say(i, 1, Because{
		Text:    "its inputs have ended, so it gets no more messages: start the job or graph anew, and requeue them to the JOB there:",
		Command: fmt.Sprintf("weir dead requeue %s --to JOB", t.Call(i)),
	})
	t.say(i, 1, Because{Text: "or discard them:", Command: "weir dead discard " + t.Call(i)})
}

// ended tells whether no message can come to a job any more.
func ended(i *job.Info) bool {
	return i.Status == statemachine.Terminated || !slices.ContainsFunc(i.Ports, func(p job.PortInfo) bool {
		return p.Dir == port.Input && p.Name != port.Any && !p.Closed
	})
}

// DeadLetters is how many dead letters a job holds.
func DeadLetters(i *job.Info) int64 {
	p, _ := i.Port(port.Output, job.ErrorsPort)
	if i.Policy != job.DeadLetter {
		return 0
	}
	return p.Waiting
}

func lie(n int64) string {
	if n == 1 {
		return "1 dead letter lies"
	}
	return term.Number(n) + " dead letters lie"
}

// say adds a reason for a job's status.
func (t *Tree) say(i *job.Info, level int, b Because) {
	if text, ok := strings.CutSuffix(b.Text, "; to run it now:"); ok && t.locked(i) {
		b.Text, b.Command = text, "" // it would be refused
	}
	b.Job, b.Level = i.ID, level
	t.reasons = append(t.reasons, b)
}

// why explains a job, once.
func (t *Tree) why(i *job.Info, level int) {
	if t.told[i.ID] {
		return
	}
	t.told[i.ID] = true
	defer t.repeats(i, level)
	who, id := "job "+t.Path(i), t.Call(i)
	lock, locked := t.Locks[i.ID]
	if locked {
		t.say(i, level, Because{
			Text:    fmt.Sprintf("%s is locked%s: it begins no run before the lock is released, or ends%s", who, t.holder(lock), t.in(lock.Until)),
			Command: "weir unlock " + id + " --force", Since: lock.Since, Next: lock.Until,
		})
	}
	switch i.Status {
	case statemachine.Running:
		t.say(i, level, Because{Text: fmt.Sprintf("%s has been running %s%s%s%s", who, t.lasting(i.Ran), t.silent(i), t.ignoring(i), crashes(i)), Since: i.Ran})
	case statemachine.Queued:
		if !locked || t.Paused[i.Queue] { // else it waits for nothing more
			t.ready(i, level)
		}
	case statemachine.Failed:
		if i.Graph {
			t.say(i, level, Because{Text: who + " failed, because of a job in it:"})
			t.below(i, level+1, func(c *job.Info) bool { return c.Status == statemachine.Failed })
			return
		}
		if strings.HasPrefix(i.Reason, store.FailedByHand) {
			t.say(i, level, Because{Text: fmt.Sprintf("%s was failed %s%s", who, FirstLine(i.Reason), stopped(i)), Command: "weir retry " + id})
			return
		}
		t.say(i, level, Because{
			Text: fmt.Sprintf("%s failed %s%s%s: %s", who, t.style.Ago(i.Ran), tries(i), stopped(i), t.failure(i)), Command: "weir retry " + id, Since: i.Ran,
		})
		t.poison(i, level)
	case statemachine.Scheduled:
		text := who + " waits for its time" + t.next(i)
		if i.Repeat != nil && i.Repeat.Count > 0 {
			text = fmt.Sprintf("%s repeats (%s): it completed %s, and its next run is%s", who, i.Repeat.Schedule, t.style.Ago(i.Repeat.Ended), strings.TrimPrefix(t.next(i), ", which is"))
		}
		if i.Tries > 0 {
			text = fmt.Sprintf("%s failed %s%s: %s; its next try is%s", who, t.style.Ago(i.Ran), tries(i), t.failure(i), strings.TrimPrefix(t.next(i), ", which is"))
		}
		if nobody := t.overlooked(i); nobody != "" {
			t.say(i, level, Because{Text: text + nobody, Next: i.Next})
		} else {
			t.say(i, level, Because{Text: text + "; to run it now:", Command: "weir run " + id, Next: i.Next})
		}
		if i.Tries > 0 {
			t.poison(i, level)
		}
		if i.Repeat != nil {
			t.deaf(i, level)
		}
	case statemachine.Waiting:
		t.waits(i, level)
	case statemachine.Terminated:
		t.terminated(i, level)
	case statemachine.Terminating:
		if i.Token != "" {
			t.say(i, level, Because{Text: fmt.Sprintf("%s is about to end: a run of it, which has lasted for %s, finishes first%s%s", who, t.style.Age(i.Ran), t.silent(i), t.ignoring(i)), Since: i.Ran})
			return
		}
		t.say(i, level, Because{Text: who + " is about to end: its Shutdown has not run yet"})
		t.served(i, level+1)
	case statemachine.Completed:
		t.completed(i, level)
	default:
		t.suspended(i, level)
	}
}

// locked tells whether a job begins no run as somebody has locked it.
func (t *Tree) locked(i *job.Info) bool {
	_, locked := t.Locks[i.ID]
	return locked
}

// failure is why a job failed, and where if it panicked.
func (t *Tree) failure(i *job.Info) string {
	if t.Stack == nil || !strings.HasPrefix(i.Reason, "panic: ") {
		return FirstLine(i.Reason)
	}
	return FirstLine(i.Reason) + Panicked(t.Stack(i))
}

// terminated explains a terminated job. Only one that is no graph can run again.
func (t *Tree) terminated(i *job.Info, level int) {
	who, id := "job "+t.Path(i), t.Call(i)
	if list := t.ending(i); len(list) > 0 {
		t.say(i, level, Because{Text: who + " is terminated, but jobs below it have not come to their end yet:"})
		t.several(list, level+1, func(c *job.Info) { t.why(c, level+1) })
		return
	}
	switch up := t.jobs[i.Parent]; {
	case !i.Graph:
		t.say(i, level, Because{Text: who + " is terminated; to make it run again:", Command: "weir run " + id + " --force"})
	case up != nil && up.Graph:
		t.say(i, level, Because{Text: who + " is terminated; a graph does not run again: it goes with the graph that it is in"})
	default:
		t.say(i, level, Because{Text: who + " is terminated; a graph does not run again: start it anew, and remove this one:", Command: "weir delete " + id})
	}
}

// ending are the jobs below a job that are about to end.
func (t *Tree) ending(i *job.Info) (list []*job.Info) {
	for _, c := range t.children[i.ID] {
		if c.Status == statemachine.Terminating {
			list = append(list, c)
		}
		list = append(list, t.ending(c)...)
	}
	return list
}

// holder says who holds a lock, and since when, as far as known.
func (t *Tree) holder(l job.LockInfo) string {
	text := ""
	if l.By != "" {
		text += " by " + l.By
	}
	if !l.Since.IsZero() {
		text += " since " + t.style.Age(l.Since)
	}
	return text
}

// ready explains a queued job.
func (t *Tree) ready(i *job.Info, level int) {
	who := "job " + t.Path(i)
	switch {
	case t.Paused[i.Queue]:
		t.say(i, level, Because{
			Text:    fmt.Sprintf("%s has been ready %s, but its queue %s is paused:", who, t.lasting(i.Queued), i.Queue),
			Command: "weir queue resume " + i.Queue, Since: i.Queued,
		})
	case Throttled(i) != "":
		t.say(i, level, Because{
			Text: fmt.Sprintf("%s is throttled: %s; it goes on%s", who, Throttled(i), t.in(i.Next)), Next: i.Next,
		})
	case strings.HasPrefix(i.Reason, "limit: "):
		t.say(i, level, Because{
			Text:    fmt.Sprintf("%s has been ready %s and %s:", who, t.lasting(i.Queued), t.limited(strings.TrimPrefix(i.Reason, "limit: "))),
			Command: "weir limits", Since: i.Queued,
		})
	case strings.HasPrefix(i.Reason, delivery.NoWorker):
		needs := i.NeedsOf()
		t.say(i, level, Because{Text: fmt.Sprintf("%s has been ready %s and waits for an engine that has type %s", who, t.lasting(i.Queued), needs.Words()), Since: i.Queued})
		t.served(i, level+1)
	default:
		text := fmt.Sprintf("%s has been ready %s and waits for an engine", who, t.lasting(i.Queued))
		if i.Reason != "" {
			text += " (" + FirstLine(i.Reason) + ")"
		}
		t.say(i, level, Because{Text: text, Since: i.Queued})
		t.served(i, level+1)
	}
}

// served tells whether there are engines for a job.
func (t *Tree) served(i *job.Info, level int) {
	command, program := "", "the program that has it"
	if slices.Contains(t.Components, i.Type) {
		command, program = "weir worker", "one"
		if i.Queue != job.DefaultQueue {
			command += " --queue " + i.Queue
		}
	}
	private := delivery.IsPrivate(i.Queue)
	known := private || slices.ContainsFunc(t.Types, func(k job.TypeInfo) bool { return k.Type == i.Type && k.Queue == i.Queue })
	switch engines := t.Engines[i.Queue]; {
	case t.Engines == nil:
		t.say(i, level, Because{Text: fmt.Sprintf("it must serve queue %s and have type %s", i.Queue, i.Type), Command: "weir types"})
	case !known:
		t.say(i, level, Because{
			Text: fmt.Sprintf("no engine has ever registered type %s for queue %s: start %s, or store its code with weir handler set %s", i.Type, i.Queue, program, i.Type), Command: cmp.Or(command, "weir types"),
		})
	case engines == 0 && private:
		t.say(i, level, Because{
			Text:    fmt.Sprintf("queue %s was private to a weir run that has ended: a worker of it, with the same --root and --allow-exec, goes on within half a minute:", i.Queue),
			Command: "weir worker --queue " + i.Queue,
		})
	case engines == 0:
		t.say(i, level, Because{Text: fmt.Sprintf("no engine serves queue %s now: start %s", i.Queue, program), Command: command})
	case t.Living != nil:
		t.say(i, level, t.living(i, engines, program, command))
	case engines == 1:
		t.say(i, level, Because{Text: fmt.Sprintf("1 engine serves queue %s: it takes the job when it has a slot free, if it has type %s", i.Queue, i.Type)})
	default:
		t.say(i, level, Because{Text: fmt.Sprintf("%d engines serve queue %s: one with type %s takes the job when it has a slot free", engines, i.Queue, i.Type)})
	}
}

// some are the first of some words, and how many more there are.
func (t *Tree) some(words []string) []string {
	if n := len(words); t.Most > 0 && n > t.Most {
		return append(words[:t.Most:t.Most], fmt.Sprintf("%d more", n-t.Most))
	}
	return words
}

// completed explains a job that has done its work: what would wake it, and what of its work
// nobody has fetched.
func (t *Tree) completed(i *job.Info, level int) {
	text := "it has worked on all it got"
	for _, p := range i.Ports {
		if p.Dir == port.Input && p.Waiting > 0 && p.Name != port.Any {
			text = fmt.Sprintf("its last run returned, and left %s unread in its port %s", messages(p.Waiting), p.Name)
		}
	}
	t.say(i, level, Because{Text: "job " + t.Path(i) + " is completed: " + text})
	t.outcome(i, level)
	for _, p := range i.Ports {
		switch {
		case p.Name == port.Any:
		case p.Dir == port.Output && p.Name == job.ErrorsPort && DeadLetters(i) > 0: // told of by dead
		case p.Dir == port.Output && p.Waiting > 0:
			t.say(i, level, Because{
				Text: fmt.Sprintf("%s in its port %s for somebody to read:", wait(p.Waiting), p.Name), Command: fmt.Sprintf("weir read %s %s --all", t.Call(i), p.Name),
			})
		case p.Dir == port.Input && !p.Closed && !p.Fed && !i.Graph:
			t.say(i, level, Because{
				Text: fmt.Sprintf("a message to its port %s would wake it:", p.Name), Command: fmt.Sprintf("weir send %s %s MESSAGE", t.Call(i), p.Name),
			})
		}
	}
}

// suspended tells what a suspended job may wait for.
func (t *Tree) suspended(i *job.Info, level int) {
	who := "job " + t.Path(i)
	switch {
	case i.Blocked:
		t.blocked(i, level)
		return
	case i.Graph:
		t.graph(i, level)
		return
	case i.Type == trigger.Type: // its ports are for that package alone
		t.trigger(i, level)
		return
	}
	before := len(t.reasons)
	if !i.Next.IsZero() {
		t.say(i, level, Because{Text: fmt.Sprintf("%s waits for a timer%s; to run it now:", who, t.next(i)), Command: "weir run " + t.Call(i), Next: i.Next})
	}
	for _, p := range i.Ports {
		switch {
		case p.Dir != port.Input || p.Name == port.Any:
		case !p.Closed:
			t.empty(i, p, level)
		case p.Waiting > 0:
			t.say(i, level, Because{
				Text:    fmt.Sprintf("%s sleeps%s while %s unread in its port %s, which is closed; to run it now:", who, t.slept(i), wait(p.Waiting), p.Name),
				Command: "weir run " + t.Call(i), Since: i.Ran,
			})
		}
	}
	open := slices.DeleteFunc(slices.Clone(t.children[i.ID]), func(c *job.Info) bool { return c.Status.Settled() })
	t.several(open, level, func(c *job.Info) {
		t.say(i, level, Because{Text: fmt.Sprintf("%s may wait for its child %s, which is %s", who, c.Name, c.Status)})
		t.why(c, level+1)
	})
	switch {
	case len(t.reasons) > before:
	case slices.ContainsFunc(i.Ports, func(p job.PortInfo) bool { return p.Dir == port.Input && p.Closed }):
		t.say(i, level, Because{
			Text: fmt.Sprintf("%s sleeps%s though all its inputs have ended: its last run asked to (worker.ErrSuspend); "+
				"a run that returns nil completes it; to run it again:", who, t.slept(i)),
			Command: "weir run " + t.Call(i), Since: i.Ran,
		})
	default:
		t.say(i, level, Because{Text: fmt.Sprintf("%s sleeps%s until somebody asks for a run", who, t.slept(i)), Command: "weir run " + t.Call(i)})
	}
}

// blocked explains a job that is suspended because it has filled a port.
func (t *Tree) blocked(i *job.Info, level int) {
	who := "job " + t.Path(i)
	reached := t.reaches(i)
	full := 0
	for _, ref := range reached {
		at := t.jobs[ref.Job]
		p, _ := at.Port(ref.Dir, ref.Port)
		if p.Limit == 0 || p.Waiting < int64(p.Limit) {
			continue
		}
		full++
		t.say(i, level, Because{
			Text:  fmt.Sprintf("%s is suspended%s because port %s of job %s is full: %s there, the limit is %d", who, t.slept(i), ref.Port, t.Path(at), wait(p.Waiting), p.Limit),
			Since: i.Ran,
		})
		t.why(at, level+1)
	}
	if full == 0 { // it has room again by now, or is not of this tree
		t.say(i, level, Because{Text: fmt.Sprintf("%s is suspended%s because of this: %s", who, t.slept(i), i.Reason), Since: i.Ran})
	}
}

// empty explains what a job waits for at an In port that is open.
func (t *Tree) empty(i *job.Info, p job.PortInfo, level int) {
	text := fmt.Sprintf("job %s waits%s for messages on port %s", t.Path(i), t.slept(i), p.Name)
	if p.Waiting > 0 {
		text = fmt.Sprintf("job %s waits%s for more messages than the %d on its port %s", t.Path(i), t.slept(i), p.Waiting, p.Name)
	}
	send := fmt.Sprintf("weir send %s %s", t.Call(i), p.Name)
	switch {
	case !p.Fed && len(p.Channels) > 0:
		t.say(i, level, Because{Text: fmt.Sprintf("%s, which come from channel %s", text, strings.Join(p.Channels, ", ")), Since: i.Ran})
	case !p.Fed && p.Waiting == 0 && p.Default == nil:
		t.say(i, level, Because{Text: text + ", which nobody is wired to:", Command: send + " MESSAGE", Since: i.Ran})
		t.say(i, level, Because{Text: "or, if nothing more is to come:", Command: send + " --close"})
	case p.Sources > 0:
		t.fed(i, p, level, text)
	case p.Fed && p.Waiting == 0: // what feeds it has ended, except for its feedback
		t.fed(i, p, level, text+" or the end of its feedback")
	}
}

// fed explains why nothing comes to a port along its wires.
func (t *Tree) fed(i *job.Info, p job.PortInfo, level int, text string) {
	var from []*job.Info
	var names, inputs []string
	for _, ref := range t.sources(job.PortRef{Job: i.ID, Dir: port.Input, Port: p.Name}) {
		at := t.jobs[ref.Job]
		q, _ := at.Port(ref.Dir, ref.Port)
		switch {
		case q.Closed:
		case ref.Dir == port.Input: // of a graph that nobody feeds from inside
			inputs = append(inputs, fmt.Sprintf("weir send %s %s", t.Call(at), ref.Port))
			names = append(names, fmt.Sprintf("input %s of %s", ref.Port, t.Path(at)))
		default:
			from = append(from, at)
			names = append(names, t.Path(at))
		}
	}
	if t.Most > 0 && len(names) > t.Most {
		names = append(names[:t.Most], fmt.Sprintf("%d more", len(names)-t.Most))
	}
	if len(names) > 0 {
		text += ", which come from " + listed(names)
	}
	t.say(i, level, Because{Text: text, Since: i.Ran})
	for _, send := range inputs {
		t.say(i, level+1, Because{Text: "that input is open: it waits for messages from outside,", Command: send + " MESSAGE"})
		t.say(i, level+1, Because{Text: "or, if nothing more is to come:", Command: send + " --close"})
	}
	t.several(from, level+1, func(c *job.Info) { t.why(c, level+1) })
}

// graph explains a graph that is not settled.
func (t *Tree) graph(i *job.Info, level int) {
	who := "job " + t.Path(i)
	if strings.HasPrefix(i.Reason, "idle") {
		t.say(i, level, Because{Text: who + " is " + i.Reason})
		before := len(t.reasons)
		for _, p := range i.Ports {
			if p.Dir == port.Input && !p.Closed {
				send := fmt.Sprintf("weir send %s %s", t.Call(i), p.Name)
				t.say(i, level, Because{Text: "to give it more to do:", Command: send + " MESSAGE"})
				t.say(i, level, Because{Text: "or, if nothing more is to come:", Command: send + " --close"})
			}
		}
		if len(t.reasons) == before { // nothing can come to the graph: its jobs say more
			t.below(i, level+1, func(c *job.Info) bool { return c.Status == statemachine.Suspended })
		}
		return
	}
	t.say(i, level, Because{Text: who + " is not completed, because of jobs in it:"})
	before := len(t.reasons)
	// First those that may do something, or cannot: others wait for them.
	t.below(i, level+1, func(c *job.Info) bool { return c.Status != statemachine.Suspended || c.Blocked || !c.Next.IsZero() })
	if len(t.reasons) == before {
		t.below(i, level+1, func(*job.Info) bool { return true })
	}
}

// below explains the jobs in a graph, and in those in it, that concern it and are not settled.
func (t *Tree) below(i *job.Info, level int, concerns func(*job.Info) bool) {
	var list []*job.Info
	var collect func(id job.ID)
	collect = func(id job.ID) {
		for _, c := range t.children[id] {
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
	t.several(list, level, func(c *job.Info) { t.why(c, level) })
}
