package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// maxBatch is how many jobs or writes one request may have.
const maxBatch = 10_000

const aboutBatch = "Each is carried out by itself, in one round trip to Redis for all: the answer says for each, in the order given, what became of it, and `failed` counts the others. " +
	"With a `key` of its own, a repeat within an hour does nothing more. "

// batchOperations are those that do for many what others do for one.
func (s *Server) batchOperations() {
	add(s, operation{
		method: http.MethodPost, path: "/v1/jobs:batch", id: "create-jobs", group: groupJobs, role: operate, lines: true, summary: "Create many jobs by their types",
		about: aboutBatch + "The body is {\"jobs\": […]}, or of the type application/x-ndjson: a job a line, as that of POST /v1/jobs.",
	}, createJobs)
	add(s, operation{
		method: http.MethodPost, path: "/v1/messages:batch", id: "send-many", group: groupPorts, role: operate, lines: true, summary: "Write messages to In ports of many jobs",
		about: aboutBatch + "The body is {\"writes\": […]}, or of the type application/x-ndjson: a write a line.",
	}, sendMany)
}

// KeyedJob is a job of several that are to be created.
type KeyedJob struct {
	NewJob
	Key string `json:"key,omitempty" maxLength:"128" doc:"a repeat within an hour creates nothing more, and answers with the same job"`
}

// ParseKeyedJob reads a line that describes a job, of which all keys must be known.
func ParseKeyedJob(line []byte) (*KeyedJob, error) {
	if err := port.Check(line); err != nil {
		return nil, malformed("it is not valid JSON: %v", err)
	}
	var one KeyedJob
	if err := decode(line, &one); err != nil {
		return nil, wrong("%v", err)
	}
	return &one, nil
}

// Creations are what many jobs are created of.
type Creations struct {
	Jobs []KeyedJob `json:"jobs"`
}

// CreatedJob is what became of one of them.
type CreatedJob struct {
	ID      job.ID   `json:"id,omitempty" doc:"of the job; missing if there is a problem"`
	Created bool     `json:"created" doc:"false if it was there already, under its key or its unique key"`
	Merged  bool     `json:"merged,omitempty" doc:"it was there under its unique key, and the args were merged into its own"`
	Problem *Problem `json:"problem,omitempty"`
}

// CreatedJobs is what became of all.
type CreatedJobs struct {
	Jobs   []CreatedJob `json:"jobs"`
	Failed int          `json:"failed" doc:"how many have a problem"`
}

type batchInput struct {
	ContentType string `header:"Content-Type" hidden:"true"`
	RawBody     []byte `contentType:"application/json"`
}

// items are those of a body: elements of all after it was decoded into body, or lines.
func items[T any](in *batchInput, body any, all *[]T, what string) ([]T, error) {
	if in.ContentType != linesType {
		if err := decode(in.RawBody, body); err != nil {
			return nil, wrong("body: %v; they are sent as {\"%s\": […]}", err, what)
		}
	} else if err := eachLine(in.RawBody, func(n int, line []byte) error {
		var one T
		if err := decode(line, &one); err != nil {
			return wrong("line %d of the body: %v", n, err)
		}
		*all = append(*all, one)
		return nil
	}); err != nil {
		return nil, err
	}
	switch n := len(*all); {
	case n == 0:
		return nil, wrong("%s is empty: there is nothing to do", what)
	case n > maxBatch:
		return nil, wrong("%s has %d elements: send at most %d at a time", what, n, maxBatch)
	}
	return *all, nil
}

func createJobs(ctx context.Context, s *session, in *batchInput) (*reply[CreatedJobs], error) {
	var body Creations
	jobs, err := items(in, &body, &body.Jobs, "jobs")
	if err != nil {
		return nil, err
	}
	out := CreatedJobs{Jobs: make([]CreatedJob, len(jobs))}
	var all []job.New
	var at []int
	for i := range jobs {
		n, err := jobs[i].New(ctx, s.client, s.store.Now)
		if err != nil {
			out.Jobs[i].Problem = problemOf(err)
			continue
		}
		n.By, n.Key = s.principal.Name, jobs[i].Key
		all, at = append(all, n), append(at, i)
	}
	started, err := s.client.CreateMany(ctx, all)
	if err != nil && !errors.As(err, new(*client.ManyError)) {
		return nil, err
	}
	for n, one := range started {
		if one.Err != nil {
			out.Jobs[at[n]].Problem = problemOf(one.Err)
		} else {
			out.Jobs[at[n]] = CreatedJob{ID: one.Handle.ID(), Created: one.Handle.Created(), Merged: one.Handle.Merged()}
		}
	}
	for _, one := range out.Jobs {
		if one.Problem != nil {
			out.Failed++
		}
	}
	return answer(out, nil)
}

// OneWrite is what is written to an In port of a job.
type OneWrite struct {
	Job      string            `json:"job" doc:"an ID, the beginning of one, or an alias"`
	Port     string            `json:"port"`
	Messages []json.RawMessage `json:"messages"`
	Context  port.Context      `json:"context,omitempty" doc:"travels with each of the messages"`
	Key      string            `json:"key,omitempty" maxLength:"128" doc:"a repeat within an hour does nothing"`
}

// Writes are what is written to many.
type Writes struct {
	Writes []OneWrite `json:"writes"`
}

// Wrote is what became of one of them.
type Wrote struct {
	Sent    int      `json:"sent"`
	Problem *Problem `json:"problem,omitempty"`
}

// Wrotes is what became of all.
type Wrotes struct {
	Writes []Wrote `json:"writes"`
	Failed int     `json:"failed" doc:"how many have a problem"`
}

func sendMany(ctx context.Context, s *session, in *batchInput) (*reply[Wrotes], error) {
	var body Writes
	writes, err := items(in, &body, &body.Writes, "writes")
	if err != nil {
		return nil, err
	}
	out := Wrotes{Writes: make([]Wrote, len(writes))}
	var all []client.Writing
	var at []int
	found := map[string]*client.Handle{}
	for i, w := range writes {
		one, err := s.writing(ctx, found, w)
		if err != nil {
			out.Writes[i].Problem = problemOf(err)
			continue
		}
		all, at = append(all, one), append(at, i)
		out.Writes[i].Sent = len(w.Messages)
	}
	err = s.client.WriteMany(s.acting(ctx), all)
	var some *client.ManyError
	if err != nil && !errors.As(err, &some) {
		return nil, err
	}
	for n, i := range at {
		if some != nil && some.Errs[n] != nil {
			out.Writes[i] = Wrote{Problem: problemOf(some.Errs[n])}
		}
	}
	for _, one := range out.Writes {
		if one.Problem != nil {
			out.Failed++
		}
	}
	return answer(out, nil)
}

// writing is one of several writes. Each job is looked for once.
func (s *session) writing(ctx context.Context, found map[string]*client.Handle, w OneWrite) (one client.Writing, err error) {
	switch {
	case w.Job == "":
		return one, wrong("job is missing: name the one that is written to")
	case len(w.Messages) == 0:
		return one, wrong("messages is empty: there is nothing to send")
	}
	if found[w.Job] == nil {
		if found[w.Job], err = s.find(ctx, w.Job); err != nil {
			delete(found, w.Job)
			return one, err
		}
	}
	one = client.Writing{To: found[w.Job], In: w.Port, Key: w.Key, Context: w.Context}
	for _, m := range w.Messages {
		one.Messages = append(one.Messages, m)
	}
	return one, nil
}
