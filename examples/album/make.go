package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/job"

	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/worker"
)

// atOnce is how many pictures are in work at a time.
const atOnce = 8

// Make spawns a graph for each picture, and passes the entries on in the order of the
// pictures.
type Make struct {
	Folder   string
	Out      string
	Widths   []int
	Pictures port.In[Picture]
	Entries  port.Out[Entry]
}

// JobType implements job.Typer.
func (*Make) JobType() string { return "album/make" }

// WorkerOptions implements worker.Configured. Each run of a child wakes the job.
func (*Make) WorkerOptions() worker.Options { return worker.Options{Pure: true} }

// Run takes what is ready of the pictures in work, the first ones first, and puts further
// ones to work. The list of those in work is all that it has to remember.
func (m *Make) Run(_ context.Context, run *worker.Run) error {
	const at = "working"
	var working []Picture
	if _, err := run.State().Get(at, &working); err != nil {
		return err
	}
	for len(working) > 0 {
		e, ok, err := m.entry(run, working[0])
		if err != nil {
			return err
		}
		if !ok {
			break // those behind it wait: the order is that of the files
		}
		if err := m.Entries.Write(e); err != nil {
			return err
		}
		working = working[1:]
	}
	for len(working) < atOnce && m.Pictures.Len() > 0 {
		p, _, err := m.Pictures.Read()
		if err != nil {
			return err
		}
		if _, err := run.Spawn(p.name(), m.graph(p)); err != nil {
			return err
		}
		working = append(working, p)
	}
	if err := run.State().Set(at, working); err != nil {
		return err
	}
	if len(working) > 0 {
		return worker.ErrSuspend // until a child has something to tell
	}
	return nil
}

// name is what the picture's graph is called.
func (p Picture) name() string { return fmt.Sprintf("%06d", p.Number) }

// graph is the work for one picture. What a job cannot resize becomes a letter to the join,
// so a broken picture fails nothing.
func (m *Make) graph(p Picture) *graph.Graph {
	g := graph.New("picture")
	join := &Join{Picture: p, Count: len(m.Widths)}
	var sizes []*Resize
	for _, width := range m.Widths {
		r := graph.Add(g, fmt.Sprintf("resize_%d", width), &Resize{}, graph.OnFailure(job.DeadLetter))
		graph.Initial(r.In, Task{
			Source: filepath.Join(m.Folder, p.File),
			Target: filepath.Join(m.Out, fmt.Sprintf("%s-%d.jpg", p.File, width)),
			Width:  width,
		})
		sizes = append(sizes, r)
	}
	graph.Add(g, "join", join)
	for _, r := range sizes {
		graph.Connect(r.Thumb, join.Thumbs)
		graph.Connect(graph.Errors(g, r), join.Failed)
	}
	graph.Export(g, "entry", join.Entry)
	return g
}

// entry is what became of a picture; ok is false while its graph works.
func (m *Make) entry(run *worker.Run, p Picture) (e Entry, ok bool, err error) {
	child, err := run.Child(p.name())
	if err != nil {
		return e, false, err
	}
	info, err := child.Info()
	if err != nil {
		return e, false, err
	}
	if ok, err = child.Read("entry", &e); ok || err != nil {
		return e, ok, err
	}
	if s := info.Status; s == statemachine.Failed || s.Settled() {
		return Entry{Picture: p, Error: "its jobs are " + info.Status.String()}, true, nil
	}
	return e, false, nil
}
