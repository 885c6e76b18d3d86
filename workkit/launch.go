package workkit

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
)

// Labels of launched trees.
const (
	Label      = "workkit"       // the name of the schedule
	LabelEntry = "workkit-entry" // the ID of the entry
)

// The message that a launched job gets has these keys in its context.
const (
	ContextEntry = "entry" // the ID of the entry
	ContextDue   = "due"   // when it was due
)

// fresh is for how long what engines have registered is taken to be as it was read.
const fresh = time.Second

// catalogue knows the registered types, as they were read last.
type catalogue struct {
	store *redisstore.Store
	types map[string]*job.TypeInfo
	at    time.Time
}

// read reads the types, unless they have just been read.
func (c *catalogue) read(ctx context.Context) error {
	if c.types != nil && time.Since(c.at) < fresh {
		return nil
	}
	all, err := c.store.Types(ctx)
	if err != nil {
		return err
	}
	c.types, c.at = make(map[string]*job.TypeInfo, len(all)), time.Now()
	for i := range all {
		t := &all[i]
		if known := c.types[t.Type]; known == nil || t.Queue == job.DefaultQueue {
			c.types[t.Type] = t
		}
	}
	return nil
}

// plan plans the job of an entry: in the queue default, if that has its type, else in the first that has. Args that nothing of the type
// takes are refused.
func (c *catalogue) plan(e *Entry) (*job.Plan, error) {
	name := e.Type()
	t := c.types[name]
	if t == nil {
		return nil, fmt.Errorf("%w %q: no engine has registered it; weir types lists those that there are", job.ErrUnknownType, name)
	}
	in := firstIn(t.Ports)
	if in == "" && string(e.Args) != "[]" {
		return nil, fmt.Errorf("%w: type %q has no In port that the args %.60s could go to: give it one, or add the entry without args", job.ErrValue, name, e.Args)
	}
	if kind := t.Kinds[port.TypeKey(port.Input, in)]; in != "" && kind != "" {
		if err := port.CheckKind(e.Args, kind); err != nil {
			return nil, fmt.Errorf("args: %w: the In port %q of type %q takes nothing else, and gets all args as one message, an array", err, in, name)
		}
	}
	return job.PlanNew(context.Background(), func(context.Context, string, string) (*job.TypeInfo, error) { return t, nil }, job.New{Type: name, Queue: t.Queue})
}

// launch is the tree that an entry launches: its first In port gets the args, and then ends.
func launch(schedule, id string, e *Entry, due time.Time, plan *job.Plan) (*store.Launch, error) {
	by := Label + ":" + schedule
	l, err := store.PlanLaunch(plan, job.By(by), job.Label(Label, schedule), job.Label(LabelEntry, id))
	if err != nil {
		return nil, err
	}
	specs := make([]port.Spec, len(plan.Nodes[0].Ports))
	for i, p := range plan.Nodes[0].Ports {
		specs[i] = p.Spec
	}
	if in := firstIn(specs); in != "" {
		message, err := port.Seal(e.Args, port.Context{port.ContextBy: by, ContextEntry: id, ContextDue: due.UTC().Format(time.RFC3339Nano)})
		if err != nil {
			return nil, err
		}
		l.Writes = []store.Write{{Dir: port.Input, Port: in, Items: []json.RawMessage{message}}}
		l.Closes = []string{in}
	}
	return l, nil
}

// firstIn is the first In port, empty if there is none.
func firstIn(ports []port.Spec) string {
	for _, p := range ports {
		if p.Dir == port.Input && p.Name != port.Any {
			return p.Name
		}
	}
	return ""
}
