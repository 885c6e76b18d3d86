package top

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/explain"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// actTime is how long an action may take.
const actTime = 30 * time.Second

// acted is what an action came to.
type acted struct {
	text string
	err  error
}

// do is a command that changes something. One is done at a time.
func (m *Model) do(doing string, most time.Duration, what func(ctx context.Context) (string, error)) tea.Cmd {
	if m.acting {
		m.say(bad, "wait until the last action is done")
		return nil
	}
	m.acting = true
	m.say(busy, doing)
	by := m.cfg.By
	return func() tea.Msg {
		ctx, cancel := context.WithTimeoutCause(context.Background(), most, errors.New("no answer within "+most.String()+"; it may have been done or not"))
		defer cancel()
		ctx = job.WithContext(ctx, port.Context{port.ContextBy: by})
		text, err := what(ctx)
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return acted{text, err}
	}
}

// act is a command that does something to a job.
func (m *Model) act(id job.ID, doing string, do func(ctx context.Context, j Job) (string, error)) tea.Cmd {
	source := m.cfg.Source
	return m.do(doing, actTime, func(ctx context.Context) (string, error) {
		j, err := source.Find(ctx, string(id))
		if err != nil {
			return "", err
		}
		return do(ctx, j)
	})
}

// run asks for a run of the selected job.
func (m *Model) run(n *node) tea.Cmd {
	who := n.path()
	return m.act(n.info.ID, "asking for a run of "+who, func(ctx context.Context, j Job) (string, error) {
		return who + " will run", j.Run(ctx)
	})
}

// retry retries the selected job, or all failed ones below it if it is a graph.
func (m *Model) retry(n *node) tea.Cmd {
	who := n.path()
	if !n.info.Graph {
		return m.act(n.info.ID, "retrying "+who, func(ctx context.Context, j Job) (string, error) {
			return who + " will run again", j.Retry(ctx)
		})
	}
	source, now := m.cfg.Source, m.cfg.Now
	return m.act(n.info.ID, "retrying what failed in "+who, func(ctx context.Context, j Job) (string, error) {
		tree, err := j.Tree(ctx)
		if err != nil {
			return "", err
		}
		done := 0
		for _, id := range failedBelow(newPicture(tree, now()).nodes[n.info.ID]) {
			one, err := source.Find(ctx, string(id))
			if err == nil {
				err = one.Retry(ctx)
			}
			switch {
			case err == nil:
				done++
			case !errors.Is(err, job.ErrStatus) && !errors.Is(err, job.ErrNotFound): // else somebody was faster
				return "", fmt.Errorf("after %s: %w", jobs(done), err)
			}
		}
		if done == 0 {
			return "", errors.New("no job with a worker has failed in " + who)
		}
		return fmt.Sprintf("%s in %s will run again", jobs(done), who), nil
	})
}

// failedBelow are the failed jobs at and below one that have a worker.
func failedBelow(n *node) []job.ID {
	if n == nil {
		return nil // it was deleted
	}
	var out []job.ID
	if n.info.Status == statemachine.Failed && !n.info.Graph {
		out = append(out, n.info.ID)
	}
	for _, c := range n.children {
		out = append(out, failedBelow(c)...)
	}
	return out
}

func jobs(n int) string { return many(n, "job") }

// terminate ends a job, or all below it too.
func (m *Model) terminate(n *node, all bool) tea.Cmd {
	who := n.path()
	if all {
		return m.act(n.info.ID, "ending "+who+" and all below it", func(ctx context.Context, j Job) (string, error) {
			return who + " and all below it will end", j.TerminateAll(ctx)
		})
	}
	return m.act(n.info.ID, "ending "+who, func(ctx context.Context, j Job) (string, error) {
		return who + " will end", j.Terminate(ctx)
	})
}

// remove deletes a job and all below it.
func (m *Model) remove(n *node) tea.Cmd {
	who := n.path()
	return m.act(n.info.ID, "deleting "+who, func(ctx context.Context, j Job) (string, error) {
		return who + " is deleted", j.Delete(ctx)
	})
}

// send writes a message to a port.
func (m *Model) send(n *node, in string, message []byte) tea.Cmd {
	where := n.path() + "." + clean(in)
	return m.act(n.info.ID, "sending to "+where, func(ctx context.Context, j Job) (string, error) {
		if err := j.Write(client.WithKnownFields(ctx), in, json.RawMessage(message)); err != nil {
			return "", err
		}
		return "sent to " + where, nil
	})
}

// words are an error in one line.
func words(err error) string { return brief(explain.FirstLine(err.Error())) }
