package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"time"

	"github.com/lmittmann/tint"
	"github.com/spf13/cobra"

	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/statemachine"
)

// logger returns what a command logs with: lines for people on a terminal, else for programs.
func logger(w io.Writer) *slog.Logger {
	if !term.IsTerminal(w) {
		return slog.New(slog.NewTextHandler(w, nil))
	}
	return slog.New(tint.NewHandler(w, &tint.Options{TimeFormat: time.TimeOnly, NoColor: !term.StyleOf(w).Color}))
}

// fact is a line of a welcome.
type fact struct{ name, text string }

// welcome says on a terminal what runs here.
func (f *workerFlags) welcome(c *cobra.Command, facts ...fact) error {
	w := c.ErrOrStderr()
	if !term.IsTerminal(w) {
		return nil
	}
	var text strings.Builder
	fmt.Fprintf(&text, "weir %s, until Ctrl-C\n\n", buildVersion())
	for _, one := range facts {
		fmt.Fprintf(&text, "  %-6s %s\n", one.name, one.text)
	}
	text.WriteString("\n")
	_, err := io.WriteString(w, text.String())
	return err
}

// runs is the fact of what an engine runs.
func (f *workerFlags) runs() fact {
	queues := "default"
	if len(f.queues) > 0 {
		queues = strings.Join(f.queues, ", ")
	}
	most := f.concurrency
	if most == 0 {
		most = 2 * runtime.NumCPU()
	}
	text := fmt.Sprintf("%d types of jobs (weir types), of queue %s; %d at a time", len(f.workers()), queues, most)
	if f.handlers.on && !f.handlers.off {
		text += "; and handlers"
	}
	return fact{"runs", text}
}

const (
	// tellEvery is how often it is looked which jobs have changed, and mostTold of how many it is told then.
	tellEvery = 500 * time.Millisecond
	mostTold  = 20
	// mostKnown is of how many jobs it is remembered what was told.
	mostKnown = 1000
)

// teller tells what becomes of root jobs.
type teller struct {
	store *redisstore.Store
	log   *slog.Logger
	place redisstore.Place
	since time.Time
	known map[job.ID]statemachine.Status // as told; empty: running
}

// tellJobs tells on a terminal which root jobs start and end, until the context ends.
func tellJobs(ctx context.Context, w io.Writer, store *redisstore.Store) {
	if !term.IsTerminal(w) {
		return
	}
	t := teller{store: store, log: logger(w), since: time.Now(), known: map[job.ID]statemachine.Status{}}
	for ctx.Err() == nil {
		t.step(ctx)
		select {
		case <-ctx.Done():
		case <-time.After(tellEvery):
		}
	}
}

// step tells what has happened since the last one. While the store does not answer nothing is told.
func (t *teller) step(ctx context.Context) {
	changes, err := t.store.Changes(ctx, false, t.place, mostTold)
	if err != nil {
		return
	}
	infos, err := t.store.Infos(ctx, changes.IDs)
	if err != nil {
		return
	}
	t.place = changes.Next
	if changes.Lost {
		t.log.Info("more jobs have changed than are told here: weir top shows all")
	}
	for _, i := range infos {
		if i.Parent == "" {
			t.tell(i)
		}
	}
}

func (t *teller) tell(i *job.Info) {
	status := i.Status
	if status != statemachine.Completed && status != statemachine.Failed && status != statemachine.Terminated {
		status = ""
	}
	before, seen := t.known[i.ID]
	if seen && before == status {
		return
	}
	if len(t.known) >= mostKnown {
		clear(t.known)
	}
	t.known[i.ID] = status
	about := []any{"type", i.Type, "job", i.ID}
	if i.Name != "" && i.Name != i.Type {
		about = append([]any{"name", i.Name}, about...)
	}
	if !seen && i.Created.After(t.since) {
		t.log.Info("started", about...) // it may have ended by now
	}
	switch {
	case status == statemachine.Failed:
		t.log.Error("failed", append(about, "reason", i.Reason)...)
	case status != "":
		t.log.Info(status.String(), about...)
	case seen:
		t.log.Info("goes on", about...)
	}
}
