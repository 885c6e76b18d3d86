package rig

import (
	"slices"
	"testing"
	"time"
)

// What asynq may keep when all is quiet, and what it may not.
func TestLeftInAsynq(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	at := func(d time.Duration) map[string]float64 { return map[string]float64{"x": float64(now.Add(d).Unix())} }
	in := func(state string) map[string]string { return map[string]string{"x": state} }
	x := []string{"x"}
	type lists = map[string][]string
	type sets = map[string]map[string]float64
	for name, c := range map[string]struct {
		queue asynqQueue
		want  []string
	}{
		"nothing":              {},
		"of a killed worker":   {asynqQueue{lists{"active": x}, sets{"lease": at(-time.Hour)}, in("active")}, nil},
		"tried later":          {asynqQueue{nil, sets{"retry": at(time.Minute)}, in("retry")}, nil},
		"not tried again":      {asynqQueue{nil, sets{"retry": at(-time.Minute)}, in("retry")}, []string{"task x should have been tried again at " + now.Add(-time.Minute).String()}},
		"pending":              {asynqQueue{lists{"pending": x}, nil, in("pending")}, []string{"task x is pending"}},
		"scheduled":            {asynqQueue{nil, sets{"scheduled": at(time.Hour)}, in("scheduled")}, []string{"task x is scheduled"}},
		"archived":             {asynqQueue{nil, sets{"archived": at(0)}, in("archived")}, []string{"task x is archived"}},
		"completed":            {asynqQueue{nil, sets{"completed": at(0)}, in("completed")}, []string{"task x is completed"}},
		"active, not leased":   {asynqQueue{lists{"active": x}, nil, in("active")}, []string{"task x is active without a lease"}},
		"leased, not active":   {asynqQueue{nil, sets{"lease": at(0)}, nil}, []string{"task x has a lease and is not active"}},
		"in no list":           {asynqQueue{nil, nil, in("pending")}, []string{`task x says that it is "pending", and is in no such list`}},
		"in the list of other": {asynqQueue{lists{"active": x}, sets{"lease": at(0)}, in("retry")}, []string{`task x says that it is "retry", and is in no such list`}},
	} {
		if got := c.queue.left(now); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
