package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirworks/weir/internal/explain"
	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
)

// remarks is where a command says what is neither its output nor an error: nowhere if a program reads both as JSON.
func (s *settings) remarks(c *cobra.Command) io.Writer {
	if strings.HasPrefix(s.output, "json") && !term.IsTerminal(c.ErrOrStderr()) {
		return io.Discard
	}
	return c.ErrOrStderr()
}

// next are the commands that help with a graph that stays where it is, for people and for programs.
type next struct {
	GoOn string `json:"go_on,omitempty"`
	Look string `json:"look,omitempty"`
	Send string `json:"send,omitempty"`
	End  string `json:"end"`
}

// next returns what helps with a graph that is not completed and stays; nil if there is nothing to be done. unfed tells that not all of
// --in was sent.
func (r *running) next(info *job.Info, unfed bool) *next {
	if !r.kept || info.Status.Settled() {
		return nil
	}
	id := string(info.ID)
	n := &next{End: "weir terminate " + id + " --recursive"}
	if r.goOn == "" { // others run its jobs
		n.Look = "weir tree " + id
		return n
	}
	n.GoOn = r.goOn
	if info.Status == statemachine.Failed {
		n.GoOn = "weir retry " + id + " --tree && " + r.goOn
	}
	if unfed {
		n.Send = "weir send " + id + " PORT MESSAGE"
	}
	return n
}

// stays says of a graph that is not completed how it goes on, and how it ends.
func (r *running) stays(ctx context.Context, unfed bool) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	info, err := r.handle.Info(ctx)
	if err != nil {
		return
	}
	n := r.next(info, unfed)
	if n == nil {
		return
	}
	where := "Redis; nobody runs its jobs now"
	switch {
	case r.goOn == "":
		where = r.store.Where()
	case r.others > 0:
		where = "Redis; nobody runs its jobs in queue " + r.queue + " now"
	}
	text := fmt.Sprintf("job %s is %s and stays %s %s\n", info.ID, info.Status, map[bool]string{true: "at", false: "in"}[r.goOn == ""], where)
	for _, step := range []struct{ what, command string }{{"to go on:", n.GoOn}, {"to look:", n.Look}, {"to send:", n.Send}, {"to end it:", n.End}} {
		if step.command != "" {
			text += fmt.Sprintf("  %-10s %s\n", step.what, step.command)
		}
	}
	_, _ = io.WriteString(r.errs, text)
}

// deadLetters counts the messages that jobs of the graph have put aside, and says so if there are any: the graph completes without them.
func (r *running) deadLetters(ctx context.Context) (n int64) {
	tree, err := r.handle.Tree(ctx)
	if err != nil { // it is a remark
		return 0
	}
	for _, i := range tree {
		n += explain.DeadLetters(i)
	}
	if n == 0 {
		return 0
	}
	what := term.Number(n) + " messages were put aside as dead letters"
	if n == 1 {
		what = "1 message was put aside as a dead letter"
	}
	text := fmt.Sprintf("weir: %s: weir dead list %s\n", what, r.handle.ID())
	if !r.kept {
		text = fmt.Sprintf("weir: %s, and that goes with this process: with --redis URL it stays, and weir dead list JOB shows it\n", what)
	}
	_, _ = io.WriteString(r.errs, text)
	return n
}
