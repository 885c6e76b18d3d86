package api

import (
	"cmp"
	"context"
	"net/http"

	"github.com/weirworks/weir/job"
)

// JobName is what a job is called.
type JobName struct {
	ID   job.ID `json:"id"`
	Name string `json:"name" doc:"as a child; of a root its first alias; of one that has neither its type"`
	Type string `json:"type"`
}

type namesInput struct {
	ID []string `query:"id" required:"true" minItems:"1" maxItems:"100" doc:"whole IDs, with commas between them"`
}

// calledOperations are those that tell what jobs are called.
func (s *Server) calledOperations() {
	add(s, operation{
		method: http.MethodGet, path: "/v1/names", id: "name-jobs", group: groupJobs, role: read, summary: "Tell what jobs are called, and which of them are there",
		about: "For those who show IDs to people: a log names many jobs, and children that have ended may be removed since. Those that are not there are left out.",
	}, nameJobs)
}

func nameJobs(ctx context.Context, s *session, in *namesInput) (*reply[[]JobName], error) {
	ids := make([]job.ID, len(in.ID))
	for n, text := range in.ID {
		id, err := job.ParseID(text)
		if err != nil {
			return nil, wrong("query.id: %v", err)
		}
		ids[n] = id
	}
	infos, err := s.store.Infos(ctx, ids)
	if err != nil {
		return nil, err
	}
	names := make([]JobName, len(infos))
	for n, i := range infos {
		names[n] = JobName{ID: i.ID, Name: i.Name, Type: i.Type}
		if i.Name == "" {
			aliases, err := s.store.Aliases(ctx, i.ID)
			if err != nil {
				return nil, err
			}
			names[n].Name = cmp.Or(append(aliases, i.Type)...)
		}
	}
	return answer(names, nil)
}
