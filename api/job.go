package api

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/explain"
	"github.com/weirworks/weir/internal/storecall"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// Job is a job as other programs see it, as docs/cli.schema.json says. What is not there, or
// was not asked for, is null.
type Job struct {
	ID            job.ID                     `json:"id"`
	Name          *string                    `json:"name"`
	Type          string                     `json:"type"`
	Queue         string                     `json:"queue"`
	Priority      *int                       `json:"priority,omitempty" doc:"if it is not 500"`
	Options       *RunOptions                `json:"options,omitempty" doc:"what the node of its graph says about its runs"`
	Repeat        *Repeat                    `json:"repeat,omitempty" doc:"when it runs again after it has completed"`
	Status        string                     `json:"status"`
	Reason        *string                    `json:"reason"`
	Parent        *string                    `json:"parent"`
	Children      any                        `json:"children"` // name to ID, or nodes in the order of their creation
	Aliases       []string                   `json:"aliases"`
	Labels        map[string]string          `json:"labels"`
	CreatedAt     *time.Time                 `json:"created_at"`
	CreatedBy     *string                    `json:"created_by"`
	RanAt         *time.Time                 `json:"ran_at"`
	SequentialKey *string                    `json:"sequential_key,omitempty" doc:"of its tree: one with it is active at a time"`
	UniqueKey     *string                    `json:"unique_key,omitempty" doc:"of a root: while it counts, a job that is created with it is this one"`
	Turn          *job.Turn                  `json:"turn,omitempty" doc:"its place among the trees with its sequential key; only where one job is shown"`
	Lock          *job.LockInfo              `json:"lock,omitempty" doc:"it begins no run while it is locked"`
	ExpiresAt     *time.Time                 `json:"expires_at"` // when it is deleted, if it has settled and stays so
	Unread        bool                       `json:"unread"`     // it is past its retention, and kept as Out ports hold unread messages
	Progress      *job.Progress              `json:"progress,omitempty" doc:"how far its runs say that it is"`
	NextAt        *time.Time                 `json:"next_at,omitempty" doc:"when it goes on by itself: a scheduled job runs then, a suspended one has a timer"`
	Args          json.RawMessage            `json:"args,omitempty" doc:"the parameters of its worker; only where one job is shown"`
	Trace         string                     `json:"trace,omitempty" doc:"the ID of the distributed trace that it was created in"`
	Outcome       string                     `json:"outcome,omitempty" doc:"only in the answer of what creates it: created; found, as it was there under its key or unique key; or merged, found and given the args"`
	TryCount      int                        `json:"try_count"`
	Errors        []Failure                  `json:"errors"`
	State         map[string]json.RawMessage `json:"state,omitzero"` // only where it was asked for
	In            map[string]Port            `json:"in"`
	Out           map[string]Port            `json:"out"`
	Edges         []Edge                     `json:"edges,omitzero"` // of a graph, in a tree
}

// RunOptions are what the node of a graph says about the runs of its jobs, in place of their type.
type RunOptions struct {
	Tries      int    `json:"tries,omitempty"`
	Backoff    string `json:"backoff,omitempty" doc:"before the second try; it doubles with each further one"`
	MaxBackoff string `json:"max_backoff,omitempty"`
	Timeout    string `json:"timeout,omitempty" doc:"of a run"`
}

// optionsOf are the options of a job's node as other programs see them.
func optionsOf(o *job.RunOptions) *RunOptions {
	if o == nil {
		return nil
	}
	text := func(d time.Duration) string {
		if d == 0 {
			return ""
		}
		return d.String()
	}
	return &RunOptions{o.Tries, text(o.Backoff), text(o.MaxBackoff), text(o.Timeout)}
}

// Failure is a recorded error of a job.
type Failure struct {
	At      time.Time `json:"at"`
	Message string    `json:"message"`
	Trace   string    `json:"trace,omitempty" doc:"the ID of the trace of the run, if it was traced"`
	Began   time.Time `json:"began,omitzero" doc:"when the run began, by the clock of Redis"`
	Step    int64     `json:"step" doc:"commits of the job before it"`
	Try     int       `json:"try,omitempty" doc:"1, or more after failures in succession"`
	Stack   string    `json:"stack,omitempty" doc:"of a panic, or of the exception of a worker in another language"`
	Port    string    `json:"port,omitempty" doc:"the In port of which the run read last"`
	Number  int64     `json:"number,omitempty" doc:"which message it read there, of all that the port ever had: the first is 0"`
	Where   string    `json:"-"` // the place of a panic, for people
}

// Port is what one port of a job holds.
type Port struct {
	Size    int64            `json:"size"`
	Default *json.RawMessage `json:"default"` // no value costs much less to encode as a pointer
	Limit   *int             `json:"limit"`
	Closed  bool             `json:"closed"`
}

// Edge is a wire between two children of a graph, or one of them and the graph itself.
type Edge struct {
	From  string `json:"from"` // "name.port"; of the graph's own In port ".port"
	To    string `json:"to"`
	Size  int64  `json:"size"`
	Limit *int   `json:"limit"`
}

// OrNull is nil for an empty text.
func OrNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func timeOrNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

func limitOrNull(n int) *int {
	if n == 0 {
		return nil
	}
	return &n
}

// JobOf is what one Info says.
func JobOf(i *job.Info) *Job {
	v := &Job{
		ID: i.ID, Name: OrNull(i.Name), Type: i.Type, Queue: i.Queue, Priority: i.Priority, Status: string(i.Status), Reason: OrNull(i.Reason), Progress: i.Progress,
		Parent: OrNull(string(i.Parent)), CreatedAt: timeOrNull(i.Created),
		CreatedBy: OrNull(i.By), RanAt: timeOrNull(i.Ran), ExpiresAt: timeOrNull(i.Expires),
		NextAt: timeOrNull(i.Next), Unread: i.Unread, TryCount: i.Tries, Options: optionsOf(i.Options), Repeat: repeatOf(i.Repeat), SequentialKey: OrNull(i.SequentialKey), UniqueKey: OrNull(i.UniqueKey),
		Trace: i.Trace.TraceID(), In: map[string]Port{}, Out: map[string]Port{}, Labels: map[string]string{},
	}
	maps.Copy(v.Labels, i.Labels)
	for _, p := range i.Ports {
		into := v.In
		if p.Dir == port.Output {
			into = v.Out
		}
		q := Port{Size: p.Waiting, Limit: limitOrNull(p.Limit), Closed: p.Closed}
		if p.Default != nil {
			q.Default = &p.Default
		}
		into[p.Name] = q
	}
	return v
}

// FullJob also asks for what an Info does not have.
func FullJob(ctx context.Context, h *client.Handle) (*Job, error) {
	info, err := h.Info(ctx)
	if err != nil {
		return nil, err
	}
	children, err := h.Children(ctx)
	if err != nil {
		return nil, err
	}
	d := job.Details{Children: make(map[string]job.ID, len(children))}
	for name, c := range children {
		d.Children[name] = c.ID()
	}
	if d.Aliases, err = h.Aliases(ctx); err != nil {
		return nil, err
	}
	if d.Failures, err = h.Failures(ctx); err != nil {
		return nil, err
	}
	v := JobOf(info)
	v.Fill(d)
	v.Args = info.Args
	if info.SequentialKey != "" {
		turn, err := h.Turn(ctx)
		if err != nil {
			return nil, err
		}
		v.Turn = &turn
	}
	if !info.Graph {
		lock, locked, err := h.Locked(ctx)
		if err != nil {
			return nil, err
		}
		if locked {
			v.Lock = lockOf(lock)
		}
	}
	v.State, err = explain.State(h.State(ctx))
	return v, err
}

// Fill adds what an Info does not have.
func (v *Job) Fill(d job.Details) {
	v.Aliases, v.Children, v.Errors = append([]string{}, d.Aliases...), d.Children, []Failure{}
	for _, f := range d.Failures {
		v.Errors = append(v.Errors, Failure{
			At: f.At.UTC(), Message: f.Error, Trace: job.StoredTrace(f.Trace).TraceID(), Began: f.Began, Step: f.Step, Try: f.Try,
			Stack: f.Stack, Port: f.Port, Number: f.Number, Where: explain.Panicked(f.Stack),
		})
	}
}

// TreeOf nests the views of a tree, whose first job is the root.
func TreeOf(tree []*job.Info) *Job {
	if len(tree) == 0 {
		return nil
	}
	views := make(map[job.ID]*Job, len(tree))
	nodes := make(map[job.ID][]*Job, len(tree))
	infos := make(map[job.ID]*job.Info, len(tree))
	families := make(map[job.ID][]*job.Info) // of graphs: they and their children
	for _, i := range tree {
		views[i.ID], infos[i.ID] = JobOf(i), i
		nodes[i.Parent] = append(nodes[i.Parent], views[i.ID])
		if i.Graph {
			families[i.ID] = append(families[i.ID], i)
		}
		if up := infos[i.Parent]; up != nil && up.Graph {
			families[i.Parent] = append(families[i.Parent], i)
		}
	}
	for _, i := range tree {
		v := views[i.ID]
		v.Children = append([]*Job{}, nodes[i.ID]...)
		if i.Graph {
			v.Edges = edgesOf(i, families[i.ID], infos)
		}
	}
	return views[tree[0].ID]
}

// edgesOf lists the wires inside a graph, family being the graph and its children.
func edgesOf(graph *job.Info, family []*job.Info, infos map[job.ID]*job.Info) []Edge {
	name := func(id job.ID) (string, bool) {
		if id == graph.ID {
			return "", true
		}
		i := infos[id]
		if i == nil {
			return "", false
		}
		return i.Name, i.Parent == graph.ID
	}
	edges := make([]Edge, 0, 2*len(family))
	for _, i := range family {
		from, _ := name(i.ID)
		for _, p := range i.Ports {
			if i == graph && p.Dir == port.Output {
				continue // leads out of the graph
			}
			for _, edge := range p.Edges {
				for _, end := range edge {
					to, inside := name(end.Job)
					if !inside {
						continue
					}
					q, _ := infos[end.Job].Port(end.Dir, end.Port)
					edges = append(edges, Edge{From: from + "." + p.Name, To: to + "." + end.Port, Size: q.Waiting, Limit: limitOrNull(q.Limit)})
				}
			}
		}
	}
	return edges
}

// lockable returns which of some jobs a lock could keep from running: no graph runs, nor what is terminated.
func lockable(list []*job.Info) []job.ID {
	var ids []job.ID
	for _, i := range list {
		if !i.Graph && i.Status != job.Terminated {
			ids = append(ids, i.ID)
		}
	}
	return ids
}

func lockOf(l job.LockInfo) *job.LockInfo {
	l.Since, l.Until = l.Since.UTC(), l.Until.UTC()
	return &l
}

// JobsOf are jobs without their states. Graphs that have no reason of their own get that of
// a throttled job in them: by its status alone such a graph seems to be well.
func JobsOf(ctx context.Context, store storecall.Store, list []*job.Info) ([]*Job, error) {
	ids := make([]job.ID, len(list))
	for n, i := range list {
		ids[n] = i.ID
	}
	details, err := store.Details(ctx, ids)
	if err != nil {
		return nil, err
	}
	all := make([]*Job, len(list))
	locks, err := store.Locked(ctx, lockable(list)...)
	if err != nil {
		return nil, err
	}
	graphs := map[job.ID]*Job{}
	for n, i := range list {
		all[n] = JobOf(i)
		if lock, locked := locks[i.ID]; locked {
			all[n].Lock = lockOf(lock)
		}
		all[n].Fill(details[n])
		if i.Graph && i.ID.IsRoot() && !i.Status.Settled() && all[n].Reason == nil {
			graphs[i.ID] = all[n]
		}
	}
	throttled, err := store.Throttled(ctx, slices.Sorted(maps.Keys(graphs))...)
	for _, t := range throttled {
		if g := graphs[t.ID.Tree()]; g.Reason == nil {
			g.Reason = OrNull(cmp.Or(t.Name, t.Type) + ": " + t.Reason)
		}
	}
	return all, err
}
