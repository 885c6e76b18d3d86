package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/trigger"
)

func newSend(s *settings) *cobra.Command {
	var end, out, asText bool
	var wait time.Duration
	c := &cobra.Command{
		Use:   "send JOB PORT [MESSAGE|@FILE|-]...",
		Short: "Send messages to a port of a job",
		Long: `Send messages to an In port of a job, which wakes it. A MESSAGE is JSON; @FILE and - send
each line of a file or of standard input, which is JSON, too. With --text each of them is a
text. A MESSAGE with a field that the Go type of the port does not have is refused; lines of
files and of standard input may have more. What weir read or weir peek print with -o jsonl is
sent as the message that it was, with its context.`,
		Example: "  weir send album-2026 files '\"a.png\"' '\"b.png\"'\n  weir send album-2026 files a.png b.png --text\n  weir send orders in @orders.jsonl --close\n  weir read orders errors --all -o jsonl | weir send archive in -",
		Args:    usage(cobra.MinimumNArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case end && out:
				return usageError{errors.New("--close is for In ports: use it without --out")}
			case len(args) == 2 && !end:
				return usageError{errors.New("there is nothing to send: give a MESSAGE, @FILE, - or --close")}
			}
			sources, err := openSources(args[2:], c.InOrStdin(), asText)
			defer closeSources(sources)
			if err != nil {
				return err
			}
			return s.with(c, args[0], func(ctx context.Context, _ *client.Client, h *client.Handle) error {
				info, err := sendable(ctx, h, args[1], out, end && len(args) == 2)
				if err != nil {
					return err
				}
				sender := sender{handle: h, port: args[1], wait: wait, out: out, asText: asText, context: port.Context{port.ContextBy: actor}}
				if err := sender.send(ctx, sources...); err != nil {
					return fresh(err)
				}
				done := fmt.Sprintf("got %s in port %s", counted(sender.sent, "message"), args[1])
				if end {
					if err := h.Close(byUser(ctx), args[1]); err != nil {
						return sender.told(err)
					}
					done += " and gets no more there"
				}
				if sender.sent == 0 {
					done = "gets no more messages in port " + args[1]
				}
				if sender.sent > 0 && !out {
					readsLater(c.ErrOrStderr(), info)
				}
				_, err = fmt.Fprintf(c.OutOrStdout(), "job %s %s\n", h.ID(), done)
				return err
			})
		},
	}
	c.Flags().BoolVar(&end, "close", false, "then close the In port: nothing more comes")
	c.Flags().BoolVar(&out, "out", false, "PORT is an Out port: as if the job had written the messages")
	c.Flags().BoolVar(&asText, "text", false, textHelp)
	spanVar(c.Flags(), &wait, "wait", 0, "how long to wait for room in a full port, like 30s; below zero: indefinitely")
	return c
}

// fresh says what helps where a port is closed.
func fresh(err error) error {
	if errors.Is(err, job.ErrClosed) {
		return fmt.Errorf("%w and gets no more messages: start the job or graph anew, and send them there", err)
	}
	return err
}

// readsLater says of a job that has failed what must be done before it reads what was sent to it.
func readsLater(w io.Writer, info *job.Info) {
	switch {
	case info.Status != statemachine.Failed:
	case info.Graph:
		fmt.Fprintf(w, "weir: a job in graph %[1]s has failed, and reads nothing before it is retried: weir retry %[1]s --tree\n", info.ID)
	default:
		fmt.Fprintf(w, "weir: job %[1]s has failed, and reads nothing before it is retried: weir retry %[1]s\n", info.ID)
	}
}

// sendable refuses a port that the job does not have, and one of a job that will not read what
// is sent to it. ends tells that its port is only closed. It returns the job as it was.
func sendable(ctx context.Context, h *client.Handle, name string, out, ends bool) (*job.Info, error) {
	info, err := h.Info(ctx)
	if err == nil && !out && !ends {
		err = trigger.CheckSend(ctx, h, info, name)
	}
	if err != nil {
		return nil, err
	}
	dir, other, hint := port.Input, port.Output, "use --out"
	if out {
		dir, other, hint = port.Output, port.Input, "leave --out away"
	}
	_, has := info.Port(dir, name)
	_, others := info.Port(dir, port.Any)
	_, across := info.Port(other, name)
	switch kind := dirNames[dir]; {
	case has || others:
	case across:
		return nil, usageError{fmt.Errorf("job %s has no %s port %q, but an %s port: %s", info.ID, kind, name, dirNames[other], hint)}
	default:
		var known []string
		for _, p := range info.Ports {
			if p.Dir == dir {
				known = append(known, p.Name)
			}
		}
		return nil, usageError{fmt.Errorf("job %s has no %s port %q: %s", info.ID, kind, name, port.Suggest(name, known))}
	}
	if info.Status == statemachine.Terminated && !out {
		again := fmt.Sprintf("weir run %s --force makes it run again", info.ID)
		if info.Graph {
			again = "start its graph anew"
		}
		return nil, fmt.Errorf("%w: job %s is terminated and would not read it: %s", job.ErrStatus, info.ID, again)
	}
	return info, nil
}

// dirNames are what the directions of ports are called.
var dirNames = map[port.Dir]string{port.Input: "In", port.Output: "Out"}

// source is where messages come from: one text, or the lines of a file or of standard input.
type source struct {
	message outgoing // if it is no file
	lines   io.Reader
	file    *os.File // to be closed
}

// pipe is a named pipe. It is opened when it is read, as that waits for who writes to it.
type pipe struct {
	name string
	file *os.File
}

// Read implements io.Reader.
func (p *pipe) Read(into []byte) (n int, err error) {
	if p.file == nil {
		if p.file, err = os.Open(p.name); err != nil {
			return 0, err
		}
	}
	if n, err = p.file.Read(into); err != nil {
		_ = p.file.Close()
	}
	return n, err
}

// reader reads until its context ends, also from what gives nothing and does not end.
type reader struct {
	ctx       context.Context //nolint:containedctx // Read has none
	from      io.Reader
	buf, rest []byte
}

// Read implements io.Reader.
func (r *reader) Read(into []byte) (int, error) {
	if len(r.rest) == 0 {
		if r.buf == nil {
			r.buf = make([]byte, 64<<10)
		}
		var n int
		var err error
		done := make(chan struct{})
		go func() {
			n, err = r.from.Read(r.buf)
			close(done)
		}()
		select {
		case <-r.ctx.Done():
			return 0, context.Cause(r.ctx)
		case <-done:
		}
		if err != nil && n == 0 {
			return 0, err
		}
		r.rest = r.buf[:n] // an error comes again
	}
	n := copy(into, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// openSources opens all sources before anything is sent. Those it returns are to be closed,
// also with an error.
func openSources(texts []string, stdin io.Reader, asText bool) ([]*source, error) {
	var all []*source
	for _, text := range texts {
		one, err := openSource(text, stdin, asText)
		if err != nil {
			return all, err
		}
		all = append(all, one)
	}
	return all, nil
}

func closeSources(all []*source) {
	for _, one := range all {
		one.close()
	}
}

func (s *source) close() {
	if s.file != nil {
		_ = s.file.Close()
	}
}

func openSource(text string, stdin io.Reader, asText bool) (*source, error) {
	if text == "-" {
		return &source{lines: stdin}, nil
	}
	name, isFile := strings.CutPrefix(text, "@")
	if !isFile {
		message, err := parseMessage(text, asText)
		if err != nil {
			return nil, usageError{fmt.Errorf("message %.40q: %w", text, err)}
		}
		return &source{message: message}, nil
	}
	name = filepath.Clean(name)
	info, err := os.Stat(name)
	switch {
	case err != nil: // opening says it better
	case info.IsDir():
		return nil, usageError{fmt.Errorf("%s is a directory: give a file", text)}
	case info.Mode()&os.ModeNamedPipe != 0:
		return &source{lines: &pipe{name: name}}, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, usageError{err}
	}
	return &source{lines: f, file: f}, nil
}

// sender writes to a port from outside, or publishes to a channel.
type sender struct {
	handle  *client.Handle // nil: port is a channel
	client  *client.Client // who publishes
	port    string
	wait    time.Duration // for room in a full port; below zero indefinitely
	out     bool
	asText  bool         // lines are strings
	context port.Context // of messages that have none of their own
	sent    int
}

// sendError says that sending ended before all was sent.
type sendError struct {
	err  error
	sent int
}

func (e sendError) Error() string { return e.err.Error() + "; " + e.before() }
func (e sendError) Unwrap() error { return e.err }

// before is how many messages were sent before.
func (e sendError) before() string {
	if e.sent == 1 {
		return "1 message was sent before"
	}
	return counted(e.sent, "message") + " were sent before"
}

// told adds to an error how many messages were sent before.
func (s *sender) told(err error) error {
	if err == nil || s.sent == 0 {
		return err
	}
	return sendError{err, s.sent}
}

// send sends what comes from sources, one after the other.
func (s *sender) send(ctx context.Context, sources ...*source) error {
	for _, one := range sources {
		if err := s.one(ctx, one); err != nil {
			return s.told(err)
		}
	}
	return nil
}

func (s *sender) one(ctx context.Context, from *source) error {
	if from.lines == nil {
		return s.write(client.WithKnownFields(ctx), []outgoing{from.message})
	}
	return s.lines(ctx, from.lines)
}

// lines sends each line of a text.
func (s *sender) lines(ctx context.Context, text io.Reader) error {
	scan := bufio.NewScanner(&reader{ctx: ctx, from: text})
	scan.Buffer(nil, 2*job.MaxMessage) // what weir read printed has a context, too
	var batch []outgoing
	size, line := 0, 1
	for ; scan.Scan(); line++ {
		one, err := parseMessage(scan.Text(), s.asText)
		if err != nil {
			return usageError{fmt.Errorf("line %d for port %s: %w", line, s.port, err)}
		}
		if len(batch) == 500 || size > 1<<20 || len(batch) > 0 && !one.like(batch[0]) {
			if err := s.write(ctx, batch); err != nil {
				return err
			}
			batch, size = nil, 0
		}
		batch, size = append(batch, one), size+len(one.data)
	}
	switch err := scan.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return usageError{fmt.Errorf("line %d for port %s: %w: it has more than %d bytes", line, s.port, job.ErrTooLarge, 2*job.MaxMessage)}
	case err != nil:
		return fmt.Errorf("reading line %d for port %s: %w", line, s.port, err)
	}
	return s.write(ctx, batch)
}

// put writes messages to the port, or publishes them.
func (s *sender) put(ctx context.Context, messages []any) error {
	switch {
	case s.handle == nil:
		return s.client.Publish(ctx, s.port, messages...)
	case s.out:
		return s.handle.WriteOut(ctx, s.port, messages...)
	}
	return s.handle.Write(ctx, s.port, messages...)
}

// write writes messages that have the same context when there is room.
func (s *sender) write(ctx context.Context, batch []outgoing) error {
	if len(batch) == 0 {
		return nil
	}
	messages := make([]any, len(batch))
	for i, one := range batch {
		messages[i] = one.data
	}
	ctx = batch[0].in(ctx, s.context)
	for deadline := time.Now().Add(s.wait); ; {
		err := s.put(ctx, messages)
		if err == nil {
			s.sent += len(messages)
		}
		if !errors.Is(err, job.ErrFull) || s.wait >= 0 && time.Now().After(deadline) {
			return err
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}
