package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/explain"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// deadOperations are those on dead letters.
func (s *Server) deadOperations() {
	add(s, operation{
		method: http.MethodGet, path: "/v1/dead", id: "list-dead-letters", group: groupPorts, role: read, summary: "List dead letters",
		about: "Those in the ports `errors` of all jobs, or of one job and those below it; of one port the oldest first.",
	}, listDead)
	add(s, operation{
		method: http.MethodGet, path: "/v1/dead/count", id: "count-dead-letters", group: groupPorts, role: read, summary: "Count dead letters",
		about: "In the ports `errors` of all jobs. It reads each job that has some, and none of the dead letters.",
	}, countDead)
	add(s, operation{
		method: http.MethodPost, path: "/v1/dead/requeue", id: "requeue-dead-letters", group: groupPorts, role: operate, summary: "Send what dead letters hold back to the In ports it came from",
		about: "The dead letters are removed and the messages written, without the envelope, at once. With neither `job` nor any filter nothing is meant: 422. If some cannot be requeued, the answer says how many were, and why others were not.",
	}, func(ctx context.Context, s *session, in *struct{ Body Requeuing }) (*reply[Settled], error) {
		f, err := s.lettersMeant(ctx, &in.Body.LettersMeant)
		if err != nil {
			return nil, err
		}
		if in.Body.Messages != nil && len(in.Body.Letters) != 1 {
			return nil, wrong("messages are in place of those of one dead letter: name it in letters")
		}
		to, err := s.id(ctx, in.Body.To)
		if err != nil {
			return nil, err
		}
		var unfit error
		n, err := s.client.RequeueAll(s.acting(ctx), f, func(l *client.StoredLetter) bool {
			if !in.Body.means(l) {
				return false
			}
			if to != "" {
				l.Job = to
			}
			if in.Body.Messages != nil {
				l.Messages = in.Body.Messages
				unfit = s.client.CheckDeadLetter(client.WithKnownFields(ctx), l)
			}
			return unfit == nil
		})
		if unfit != nil {
			return nil, unfit
		}
		return settled(n, err)
	})
	add(s, operation{
		method: http.MethodPost, path: "/v1/dead/discard", id: "discard-dead-letters", group: groupPorts, role: operate, summary: "Remove dead letters for good",
		about: "With neither `job` nor any filter nothing is meant: 422.",
	}, func(ctx context.Context, s *session, in *struct{ Body LettersMeant }) (*reply[Settled], error) {
		f, err := s.lettersMeant(ctx, &in.Body)
		if err != nil {
			return nil, err
		}
		return settled(s.client.DiscardAll(s.acting(ctx), f, in.Body.means))
	})
}

// LettersMeant says which dead letters are meant.
type LettersMeant struct {
	Job     string     `json:"job,omitempty" doc:"in ports of this job and those below it"`
	Port    string     `json:"port,omitempty" doc:"another Out port of the job, which dead letters come to along edges"`
	Letters []string   `json:"letters,omitempty" doc:"only these, by their IDs"`
	Type    string     `json:"type,omitempty" doc:"in ports of jobs of this type"`
	Queue   string     `json:"queue,omitempty" doc:"in ports of jobs of this queue"`
	Error   string     `json:"error,omitempty" doc:"a text in the error"`
	Since   *time.Time `json:"since,omitempty" doc:"whose last try failed then, or later"`
	Until   *time.Time `json:"until,omitempty" doc:"whose last try failed before"`
}

// means tells whether a letter is one of those that are named, if any are.
func (m *LettersMeant) means(l *client.StoredLetter) bool {
	return m.Letters == nil || slices.Contains(m.Letters, l.ID)
}

// Requeuing says what is to be requeued.
type Requeuing struct {
	LettersMeant
	To       string                     `json:"to,omitempty" doc:"write the messages to the In ports of the same names of this job"`
	Messages map[string]json.RawMessage `json:"messages,omitempty" doc:"of one dead letter, which letters names: by In port, what is written in place of what it holds"`
}

// Settled is how many dead letters something was done with.
type Settled struct {
	Done  int    `json:"done"`
	Error string `json:"error,omitempty" doc:"why it was not done with others"`
}

// settled answers with what was done. That none could be is an error.
func settled(n int, err error) (*reply[Settled], error) {
	if err != nil && n == 0 {
		return nil, err
	}
	out := Settled{Done: n}
	if err != nil {
		out.Error = err.Error()
	}
	return answer(out, nil)
}

// id returns the ID of the job that a name stands for, and none for no name.
func (s *session) id(ctx context.Context, name string) (job.ID, error) {
	if name == "" {
		return "", nil
	}
	h, err := s.find(ctx, name)
	if err != nil {
		return "", err
	}
	return h.ID(), nil
}

// lettersMeant makes a filter, which must not be empty.
func (s *session) lettersMeant(ctx context.Context, m *LettersMeant) (client.LetterFilter, error) {
	if m.Job == "" && m.Type == "" && m.Queue == "" && m.Error == "" && m.Since == nil && m.Until == nil {
		return client.LetterFilter{}, wrong("say which dead letters are meant: job, type, queue, error, since or until")
	}
	q := DeadFilter{Job: m.Job, Port: m.Port, Type: m.Type, Queue: m.Queue, Error: m.Error}
	if m.Since != nil {
		q.Since = *m.Since
	}
	if m.Until != nil {
		q.Until = *m.Until
	}
	return s.letterFilter(ctx, &q)
}

// DeadFilter is LettersMeant in a query.
type DeadFilter struct {
	Job   string    `query:"job" doc:"in ports of this job and those below it"`
	Port  string    `query:"port" doc:"another Out port of the job, which dead letters come to along edges"`
	Type  string    `query:"type" doc:"in ports of jobs of this type"`
	Queue string    `query:"queue" doc:"in ports of jobs of this queue"`
	Error string    `query:"error" doc:"a text in the error"`
	Since time.Time `query:"since" doc:"whose last try failed then, or later"`
	Until time.Time `query:"until" doc:"whose last try failed before"`
}

func (s *session) letterFilter(ctx context.Context, q *DeadFilter) (client.LetterFilter, error) {
	id, err := s.id(ctx, q.Job)
	if err != nil {
		return client.LetterFilter{}, err
	}
	f := client.LetterFilter{Job: id, Port: q.Port, Jobs: job.Filter{Type: q.Type, Queue: q.Queue}, Error: q.Error, Since: q.Since, Until: q.Until}
	if err := f.Validate(); err != nil {
		return f, wrong("%v", err)
	}
	return f, nil
}

type deadInput struct {
	DeadFilter
	Limit int `query:"limit" default:"100" minimum:"1" maximum:"1000"`
}

// DeadLetter is a dead letter, and where it lies.
type DeadLetter struct {
	ID       string                     `json:"id"`
	In       PortOf                     `json:"in" doc:"the port that it lies in"`
	Number   int64                      `json:"number" doc:"of the message in that port"`
	Job      job.ID                     `json:"job" doc:"who could not handle it"`
	Error    string                     `json:"error"`
	At       time.Time                  `json:"at" doc:"when the last try failed"`
	Messages map[string]json.RawMessage `json:"messages" doc:"what could not be handled, by In port"`
	Name     string                     `json:"name" doc:"what commands call the job: an alias and the names below it, or its ID"`
	Refused  string                     `json:"refused,omitempty" doc:"why it cannot be requeued, unless to another job"`
}

// PortOf names a port of a job.
type PortOf struct {
	Job  job.ID `json:"job"`
	Port string `json:"port"`
}

// DeadLetters are the first that pass a filter.
type DeadLetters struct {
	Letters []DeadLetter `json:"letters"`
	More    bool         `json:"more" doc:"there are more than the limit"`
}

// DeadCount is how many dead letters there are.
type DeadCount struct {
	Letters int64 `json:"letters"`
	Jobs    int   `json:"jobs" doc:"that have them in their ports errors"`
	More    bool  `json:"more" doc:"more jobs have some: these are of the first thousand"`
}

// maxDeadCounted is how many jobs are read to count their dead letters.
const maxDeadCounted = 1000

func countDead(ctx context.Context, s *session, _ *struct{}) (*reply[DeadCount], error) {
	var out DeadCount
	for i, err := range s.store.Dead(ctx, "", job.Filter{}) {
		if err != nil {
			return nil, err
		}
		if out.More = out.Jobs == maxDeadCounted; out.More {
			break
		}
		p, _ := i.Port(port.Output, job.ErrorsPort)
		out.Letters += p.Waiting
		out.Jobs++
	}
	return answer(out, nil)
}

func listDead(ctx context.Context, s *session, in *deadInput) (*reply[DeadLetters], error) {
	f, err := s.letterFilter(ctx, &in.DeadFilter)
	if err != nil {
		return nil, err
	}
	out := DeadLetters{Letters: []DeadLetter{}}
	names, refused := explain.Names(ctx, s.client), s.refusals(ctx)
	for l, err := range s.client.DeadLetters(ctx, f) {
		if err != nil {
			return nil, err
		}
		if out.More = len(out.Letters) == in.Limit; out.More {
			break
		}
		out.Letters = append(out.Letters, DeadLetter{
			ID: l.ID, In: PortOf{l.In.Job, l.In.Port}, Number: l.Number, Job: l.Job, Error: l.Error, At: l.At, Messages: l.Messages,
			Name: names(l.Job), Refused: refused(l),
		})
	}
	return answer(out, nil)
}

// refusals returns what says why a dead letter cannot be requeued. Each job is looked up once; of one that cannot be read nothing is known.
func (s *session) refusals(ctx context.Context) func(*client.StoredLetter) string {
	type known struct {
		info *job.Info
		err  error
	}
	jobs := map[job.ID]known{}
	return func(l *client.StoredLetter) string {
		of, ok := jobs[l.Job]
		if !ok {
			of.info, of.err = s.client.At(l.Job).Info(ctx)
			jobs[l.Job] = of
		}
		switch {
		case errors.Is(of.err, job.ErrNotFound):
			return "its job was removed"
		case of.err != nil:
			return ""
		case of.info.Status == statemachine.Terminated:
			return "its job is terminated, and would not read it"
		}
		for _, in := range slices.Sorted(maps.Keys(l.Messages)) {
			p, has := of.info.Port(port.Input, in)
			_, others := of.info.Port(port.Input, port.Any)
			switch {
			case !has && !others:
				return fmt.Sprintf("its job has no In port %q", in)
			case p.Closed:
				return fmt.Sprintf("port %q of its job is closed", in)
			}
		}
		return ""
	}
}
