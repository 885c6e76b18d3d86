package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// Client creates jobs and finds them. It holds its store, and what it has read of the catalogue
// of worker types; it needs no closing.
type Client struct {
	store store.Store
	types *catalogue
	trace traceFinder
}

// New returns a client of a store: one of redisstore.Open, or of httpstore.Open, which asks a server.
func New(s store.Store, opts ...Option) *Client {
	c := &Client{store: s, types: &catalogue{store: s}}
	for _, opt := range opts {
		if opt != nil {
			opt(c)
		}
	}
	return c
}

// handle returns a handle of a job.
func (c *Client) handle(id job.ID) *Handle {
	return &Handle{store: c.store, types: c.types, trace: c.trace, id: id}
}

// Find returns a handle of a job by its ID, by the beginning of its ID, of at least four
// characters, if no other job's begins so, or by an alias; Latest is the newest tree. Names of children may follow, as in
// shop/pay/t38. Otherwise the error wraps job.ErrNotFound or job.ErrAmbiguous.
func (c *Client) Find(ctx context.Context, name string) (*Handle, error) {
	id, err := c.resolve(ctx, name)
	if err != nil {
		return nil, err
	}
	info, err := c.store.Info(ctx, id)
	if err != nil {
		return nil, err
	}
	h := c.handle(id)
	h.seen = info
	return h, nil
}

// Latest stands for the newest job without parent.
const Latest = "@latest"

// resolve returns the ID of a job that is named as Find says. Aliases and names may have slashes, too: what is in front of the names of
// children is the longest alias that there is. An alias that is also the path to another job names neither.
func (c *Client) resolve(ctx context.Context, name string) (job.ID, error) {
	id, err := c.resolveTop(ctx, name)
	switch {
	case absent(err):
		if below, is, no := c.below(ctx, name); is {
			return below, no
		}
	case err == nil && strings.Contains(name, "/"):
		if below, is, no := c.below(ctx, name); is && no == nil && below != id {
			return "", fmt.Errorf("%w: %.80q is an alias of job %s, and the path to job %s: give the ID", job.ErrAmbiguous, name, id, below)
		}
	}
	return id, err
}

// absent tells whether an error says that there is no such job.
func absent(err error) bool { return errors.Is(err, job.ErrNotFound) || errors.Is(err, job.ErrID) }

// below returns the ID of a job that is named by the names of children behind something else, if that is something.
func (c *Client) below(ctx context.Context, name string) (id job.ID, is bool, err error) {
	for at := strings.LastIndexByte(name, '/'); at > 0; at = strings.LastIndexByte(name[:at], '/') {
		top, err := c.resolveTop(ctx, name[:at])
		switch {
		case err == nil:
			id, err = c.descend(ctx, top, name[at+1:])
			return id, true, err
		case !absent(err):
			return "", true, err
		}
	}
	return "", false, nil
}

// descend returns the job below another one that a path of names leads to.
func (c *Client) descend(ctx context.Context, id job.ID, path string) (job.ID, error) {
	child, err := c.store.Child(ctx, id, path)
	if !errors.Is(err, job.ErrNotFound) {
		return child, err
	}
	for at := strings.LastIndexByte(path, '/'); at > 0; at = strings.LastIndexByte(path[:at], '/') {
		child, err := c.store.Child(ctx, id, path[:at])
		switch {
		case err == nil:
			return c.descend(ctx, child, path[at+1:])
		case !errors.Is(err, job.ErrNotFound):
			return "", err
		}
	}
	return "", fmt.Errorf("%w: job %s has no child %.80q", job.ErrNotFound, id, path)
}

// latest returns the newest job without parent.
func (c *Client) latest(ctx context.Context) (job.ID, error) {
	for i, err := range c.store.Jobs(ctx, job.Filter{}) {
		if err != nil {
			return "", err
		}
		return i.ID, nil
	}
	return "", fmt.Errorf("%w: there are no jobs, so none is %s", job.ErrNotFound, Latest)
}

// resolveTop is resolve for what is in front of the names of children.
func (c *Client) resolveTop(ctx context.Context, name string) (job.ID, error) {
	if name == Latest {
		return c.latest(ctx)
	}
	if id, err := job.ParseID(name); err == nil {
		return id, nil
	}
	if job.CheckAlias(name) == nil {
		id, err := c.store.Resolve(ctx, name)
		if !errors.Is(err, job.ErrNotFound) || !couldBeID(name) {
			return id, err
		}
	}
	if !couldBeID(name) {
		if tooShort(name) {
			return "", fmt.Errorf("%w: %q is too short: give at least %d characters of an ID", job.ErrNotFound, name, minPrefix)
		}
		return "", fmt.Errorf("%w: %.80q is neither a job ID, nor the beginning of one, nor an alias", job.ErrNotFound, name)
	}
	prefix, number, child := strings.Cut(name, ".")
	ids, err := c.store.Prefixed(ctx, prefix, 2)
	switch {
	case err != nil:
		return "", err
	case len(ids) == 0:
		return "", fmt.Errorf("%w: no job's ID begins with %q, and none has it as an alias", job.ErrNotFound, name)
	case len(ids) > 1:
		return "", fmt.Errorf("%w: the IDs of several jobs begin with %q, such as %s and %s; write more of it", job.ErrAmbiguous, name, ids[0], ids[1])
	case child:
		return job.ParseID(string(ids[0].Tree()) + "." + number)
	}
	return ids[0], nil
}

// couldBeID tells whether a text could be the beginning of a job ID.
func couldBeID(s string) bool {
	prefix, _, _ := strings.Cut(s, ".")
	return len(prefix) >= minPrefix && len(prefix) <= job.IDLength && idLetters(prefix)
}

// minPrefix is how many characters of an ID are needed to find a job.
const minPrefix = 4

// tooShort tells whether a text could be the beginning of a job ID, were it longer.
func tooShort(s string) bool {
	prefix, _, _ := strings.Cut(s, ".")
	return prefix != "" && len(prefix) < minPrefix && idLetters(prefix)
}

func idLetters(s string) bool { return strings.Trim(s, "0123456789abcdef-") == "" }

// Types returns the worker types that engines have registered, sorted by queue and type.
func (c *Client) Types(ctx context.Context) ([]job.TypeInfo, error) { return c.store.Types(ctx) }

// Publish sends messages to a channel: to the In ports that subscribe to it or to a
// channel above it, as /orders is above /orders/new.
func (c *Client) Publish(ctx context.Context, channel string, messages ...any) error {
	items, err := encode(ctx, c.trace, messages)
	if err == nil {
		err = port.CheckChannel(channel)
	}
	if err != nil {
		return fmt.Errorf("publishing to %q: %w", channel, err)
	}
	return c.store.Publish(ctx, channel, items)
}

// Listen calls fn with each message that is published to exactly this channel, until ctx
// ends. Messages published while nobody listens, or while Redis cannot be reached, are
// missed: jobs that must not miss any subscribe with an In port. Statuses of jobs are
// published to StatusChannel.
func (c *Client) Listen(ctx context.Context, channel string, fn func(message json.RawMessage)) error {
	if err := port.CheckChannel(channel); err != nil {
		return fmt.Errorf("listening to %q: %w", channel, err)
	}
	return c.store.Listen(ctx, channel, fn)
}

// StatusChannel is the channel of a job's status: {"job": id, "status": status}, with
// the status "deleted" at the end, also if a job above it is deleted.
func StatusChannel(id job.ID) string { return "/weir/job/" + string(id) }

type writeKey struct{}

type writeOptions struct{ quiet, unlogged, known bool }

// WithoutNotify returns a context under which writes from outside of runs wake nobody.
func WithoutNotify(ctx context.Context) context.Context {
	o, _ := ctx.Value(writeKey{}).(writeOptions)
	o.quiet = true
	return context.WithValue(ctx, writeKey{}, o)
}

// WithoutLog returns a context under which writes from outside of runs are not logged.
func WithoutLog(ctx context.Context) context.Context {
	o, _ := ctx.Value(writeKey{}).(writeOptions)
	o.unlogged = true
	return context.WithValue(ctx, writeKey{}, o)
}

// WithKnownFields returns a context under which a write from outside of runs is refused if an object in a message has a field that no Go
// type has where the message arrives: what people type may be misspelled, and a worker would not see it.
func WithKnownFields(ctx context.Context) context.Context {
	o, _ := ctx.Value(writeKey{}).(writeOptions)
	o.known = true
	return context.WithValue(ctx, writeKey{}, o)
}

// encode encodes messages with the context that ctx has for them, and the trace that is found there.
func encode(ctx context.Context, trace traceFinder, messages []any) ([]json.RawMessage, error) {
	items := make([]json.RawMessage, len(messages))
	size, context := 0, trace.in(ctx).Carry(job.ContextOf(ctx))
	for i, m := range messages {
		raw, err := port.Encode(m)
		if err == nil {
			err = job.CheckSize("a message", len(raw))
		}
		if err != nil {
			return nil, err
		}
		if size += len(raw); size > job.MaxCommit {
			return nil, fmt.Errorf("%w: the messages have more than %d bytes together; write them in several calls", job.ErrTooLarge, job.MaxCommit)
		}
		if job.Values(i+1, size) > job.MaxWrites {
			return nil, fmt.Errorf("%w: the messages come to more than %d values, where each 512 bytes count as one more; write them in several calls",
				job.ErrTooLarge, job.MaxWrites)
		}
		if items[i], err = port.Seal(raw, context); err != nil {
			return nil, err
		}
		if n := port.VersionOf(m); n > 1 {
			items[i] = port.SealVersion(items[i], n)
		}
	}
	return items, nil
}

// pathOf joins the names from the root of a tree down to one of its jobs.
func pathOf(tree []*job.Info, id job.ID) string {
	byID := make(map[job.ID]*job.Info, len(tree))
	for _, i := range tree {
		byID[i.ID] = i
	}
	var names []string
	for i := byID[id]; i != nil; i = byID[i.Parent] {
		name := i.Name
		if name == "" {
			name = i.Type
		}
		names = append([]string{name}, names...)
	}
	return strings.Join(names, "/")
}

// failureOf finds the job to blame for a failed one: a graph only passes on the failure of
// a job below it.
func failureOf(ctx context.Context, s store.Inspector, tree []*job.Info, blame *job.Info) error {
	for _, i := range tree {
		if blame.Graph && i.Status == statemachine.Failed && !i.Graph {
			blame = i
			break
		}
	}
	reason := "no reason was recorded"
	fs, err := s.Failures(ctx, blame.ID)
	if err != nil && !errors.Is(err, job.ErrNotFound) {
		return err
	}
	if len(fs) > 0 {
		reason, _, _ = strings.Cut(fs[0].Error, "\n")
	}
	return &FailedError{Job: blame.ID, Path: pathOf(tree, blame.ID), Reason: reason}
}
