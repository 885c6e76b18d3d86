package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/trigger"
)

// Trigger is a trigger as other programs see it.
type Trigger struct {
	ID         job.ID           `json:"id"`
	Aliases    []string         `json:"aliases,omitempty"`
	Status     string           `json:"status" doc:"of its job: completed if it fires no more"`
	Kind       string           `json:"kind" doc:"what makes it fire: schedule, event or webhook"`
	Paused     bool             `json:"paused"`
	Understood string           `json:"understood,omitempty" doc:"what the schedule means, in English"`
	Next       []time.Time      `json:"next,omitempty" doc:"when it fires next, if nothing holds it back"`
	Definition json.RawMessage  `json:"definition" doc:"when it fires and what it launches: docs/triggers.md"`
	Firings    int64            `json:"firings"`
	Launches   int64            `json:"launches" doc:"trees launched"`
	Dropped    map[string]int64 `json:"dropped,omitempty" doc:"what did not fire, by reason"`
	Failed     int64            `json:"failed,omitempty" doc:"launched trees that have failed, as far as the trigger is told: with limits.parallel"`
	Last       *time.Time       `json:"last,omitempty" doc:"when it fired last"`
	LastTree   job.ID           `json:"last_tree,omitempty" doc:"which tree it launched last"`
	Running    []job.ID         `json:"running,omitempty" doc:"launched trees that have not ended, if limits.parallel says how many there may be"`
	Waiting    int64            `json:"waiting" doc:"messages and firings that wait"`
	Pending    int64            `json:"pending" doc:"things asked of it that wait for its next run"`
	Reason     string           `json:"reason,omitempty" doc:"why its job does not go on"`
}

// triggerOf is a trigger as other programs see it.
func triggerOf(t *trigger.Status, err error) (*reply[Trigger], error) {
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(t.Definition)
	return answer(Trigger{
		ID: t.ID, Aliases: t.Aliases, Status: string(t.Status), Kind: string(t.Kind), Paused: t.Paused, Understood: t.Understood,
		Next: t.Next, Definition: raw, Firings: t.Firings, Launches: t.Launches, Dropped: t.Dropped, Failed: t.Failed, Last: t.Last, LastTree: t.LastTree,
		Running: t.Running, Waiting: t.Waiting, Pending: t.Pending, Reason: t.Reason,
	}, err)
}

// NewTrigger is a trigger to make.
type NewTrigger struct {
	Definition json.RawMessage   `json:"definition" doc:"an object as docs/triggers.md describes it: schedule, channel or neither; launch, with type and args; limits"`
	Graph      *GraphText        `json:"graph,omitempty" doc:"the graph to launch instead of a type, as it is now"`
	Alias      *string           `json:"alias,omitempty"`
	Labels     map[string]string `json:"labels,omitempty"`
	Existing   string            `json:"existing,omitempty" enum:"refuse,patch" doc:"of another trigger under the alias: refuse (the default), or patch: it becomes this one, as by a change"`
	Secret     string            `json:"secret,omitempty" doc:"what messages are signed with, if definition.verify says how; nothing shows it any more"`
}

// definition reads and checks what a request says.
func (s *session) definition(ctx context.Context, b NewTrigger) (d trigger.Definition, err error) {
	if len(b.Definition) > 0 {
		if d, err = trigger.ParseDefinition(b.Definition); err != nil {
			return d, err
		}
	}
	if b.Graph != nil {
		_, plan, err := s.build(ctx, *b.Graph)
		if err != nil {
			return d, err
		}
		if d.Launch == nil {
			d.Launch = &trigger.Launch{}
		}
		d.Launch.Plan, d.Launch.Params = (*trigger.Plan)(plan), b.Graph.Params
	}
	if d.Launch == nil {
		return d, wrong("what is it to launch? Give definition.launch or graph")
	}
	return d, nil
}

// add makes the trigger, or changes the one that is there under its alias, if that is asked for.
func (b *NewTrigger) add(ctx context.Context, c *client.Client, d trigger.Definition, opts []job.Option) (*client.Handle, error) {
	alias, err := textOf("alias", b.Alias)
	switch {
	case err != nil:
		return nil, err
	case b.Existing != "" && b.Existing != "refuse" && b.Existing != "patch":
		return nil, wrong("existing %.40q: %s", b.Existing, port.Suggest(b.Existing, []string{"refuse", "patch"}))
	case b.Existing == "patch" && alias == "":
		return nil, wrong("existing says what to do with another trigger under the alias: give one")
	case b.Existing == "patch":
		return trigger.Declare(ctx, c, alias, d, opts...)
	case alias != "":
		opts = append(opts, job.Alias(alias))
	}
	return trigger.Add(ctx, c, d, opts...)
}

// misdefined makes a definition that is wrong a fault of the request.
func misdefined(err error) error {
	if errors.Is(err, job.ErrConfig) {
		return wrong("%s", err.Error())
	}
	return err
}

// How many of its next times a trigger is shown with, in a list and when it is new.
const (
	listedNext = 1
	shownNext  = 5
)

// triggerOperations are those on triggers.
func (s *Server) triggerOperations() {
	add(s, operation{
		method: http.MethodGet, path: "/v1/triggers", id: "list-triggers", group: groupTriggers, role: read, summary: "List triggers, the newest first",
	}, func(ctx context.Context, s *session, in *struct {
		All bool `query:"all" doc:"also those that fire no more"`
	},
	) (*reply[[]Trigger], error) {
		found := []Trigger{}
		for t, err := range trigger.List(ctx, s.client, in.All, listedNext) {
			one, err := triggerOf(t, err)
			if err != nil {
				return nil, err
			}
			found = append(found, one.Body)
		}
		return answer(found, nil)
	})
	add(s, operation{
		method: http.MethodPost, path: "/v1/triggers", id: "add-trigger", group: groupTriggers, role: operate, status: http.StatusCreated, summary: "Make a trigger",
		about: "A schedule that is wrong or never comes, a type that nobody has, arguments that it does not take and trees that are too large are refused. With an alias that exists already no other trigger is made: another definition is refused, unless `existing` is patch.",
	}, func(ctx context.Context, s *session, in *struct {
		Key  string `header:"Idempotency-Key" maxLength:"128" doc:"a repeat within an hour makes nothing more, and answers with the same trigger"`
		Body NewTrigger
	},
	) (*reply[Trigger], error) {
		d, err := s.definition(ctx, in.Body)
		if err != nil {
			return nil, misdefined(err)
		}
		opts := []job.Option{job.By(s.principal.Name)}
		for key, value := range in.Body.Labels {
			opts = append(opts, job.Label(key, value))
		}
		if in.Key != "" {
			opts = append(opts, job.Key(in.Key))
		}
		var h *client.Handle
		if err := s.once(ctx, "start", in.Key, in.Body, func() (err error) {
			if in.Body.Secret != "" {
				err = job.CheckSecret(in.Body.Secret)
			}
			if err == nil && (in.Body.Secret != "") != (d.Verify != nil) {
				err = wrong("secret and definition.verify go together: one says what messages are signed with, the other how")
			}
			if err == nil {
				h, err = in.Body.add(s.acting(ctx), s.client, d, opts)
			}
			if err == nil && d.Verify != nil { // until then nothing is taken
				err = trigger.SetSecret(ctx, s.store, h, in.Body.Secret)
			}
			return err
		}); err != nil {
			return nil, misdefined(err)
		}
		return triggerOf(trigger.Get(ctx, s.client, h, shownNext))
	})
	add(s, operation{
		method: http.MethodGet, path: "/v1/triggers/{job}", id: "get-trigger", group: groupTriggers, role: read, summary: "Show a trigger, with its next times and what it dropped",
	}, func(ctx context.Context, s *session, in *struct {
		JobPath
		Next int `query:"next" default:"5" minimum:"0" maximum:"1000" doc:"how many of its next times"`
	},
	) (*reply[Trigger], error) {
		h, err := s.find(ctx, in.Job)
		if err != nil {
			return nil, err
		}
		return triggerOf(trigger.Get(ctx, s.client, h, in.Next))
	})
	s.triggerActs()
}

// triggerActs are the operations that ask something of a trigger.
func (s *Server) triggerActs() {
	const later = "It holds before the next firing; while no engine runs it waits, and `pending` tells of it."
	add(s, operation{
		method: http.MethodPatch, path: "/v1/triggers/{job}", id: "change-trigger", group: groupTriggers, role: operate, status: http.StatusNoContent, summary: "Change when a trigger fires, and what it launches",
		about: "The body has the fields of the definition that change; null clears one. Another schedule begins anew. " + later,
	}, func(ctx context.Context, s *session, in *struct {
		JobPath
		Body json.RawMessage
	},
	) (*nothing, error) {
		h, err := s.find(ctx, in.Job)
		if err == nil {
			err = misdefined(trigger.Change(s.acting(ctx), s.client, h, s.principal.Name, in.Body))
		}
		return done(err)
	})
	for verb, act := range map[string]struct {
		summary string
		do      func(ctx context.Context, h *client.Handle, by string) error
	}{
		"pause":  {"Let a trigger drop what would fire, until it is resumed", trigger.Pause},
		"resume": {"Let a paused trigger fire again", trigger.Resume},
	} {
		add(s, operation{
			method: http.MethodPost, path: "/v1/triggers/{job}/" + verb, id: verb + "-trigger", group: groupTriggers, role: operate, status: http.StatusNoContent, summary: act.summary, about: later,
		}, func(ctx context.Context, s *session, in *JobPath) (*nothing, error) {
			h, err := s.find(ctx, in.Job)
			if err == nil {
				err = act.do(s.acting(ctx), h, s.principal.Name)
			}
			return done(err)
		})
	}
	add(s, operation{
		method: http.MethodPost, path: "/v1/triggers/{job}/fire", id: "fire-trigger", group: groupTriggers, role: operate, status: http.StatusNoContent, summary: "Let a trigger fire once, also while it is paused",
		about: "The body is what the firing says; without one, what a tick of a schedule does. " + later,
	}, func(ctx context.Context, s *session, in *messageInput) (*nothing, error) {
		h, err := s.find(ctx, in.Job)
		if err == nil {
			err = s.once(ctx, "fire "+string(h.ID()), in.Key, given(in.Body), func() error {
				return trigger.FireOnce(s.acting(ctx), h, in.Key, s.principal.Name, given(in.Body))
			})
		}
		return done(err)
	})
	s.webhookOperations()
	add(s, operation{
		method: http.MethodDelete, path: "/v1/triggers/{job}", id: "delete-trigger", group: groupTriggers, role: operate, status: http.StatusNoContent, summary: "End a trigger, and remove it",
		about: "Trees that it launched go on. While no engine runs that could end it, it fires no more and the answer is 409: delete it again when one runs.",
	}, func(ctx context.Context, s *session, in *JobPath) (*nothing, error) {
		h, err := s.find(ctx, in.Job)
		if err == nil {
			ctx, cancel := context.WithTimeout(s.acting(ctx), deletion)
			defer cancel()
			err = trigger.Delete(ctx, s.store, h)
		}
		return done(err)
	})
}

// deletion is how long the deletion of a trigger waits for a run in progress, or an engine that is busy.
const deletion = 15 * time.Second

// messageInput is a message for a trigger.
type messageInput struct {
	JobPath
	Key  string `header:"Idempotency-Key" maxLength:"128" doc:"a repeat within an hour does nothing"`
	Body *json.RawMessage
}
