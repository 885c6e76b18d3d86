package bedrock

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// kids are the children of a job.
type kids []*job.Info

// children returns those of a job, without those of its earlier repetitions.
func (s *Service) children(ctx context.Context, k *known) (kids, error) {
	all, err := s.everyChild(ctx, k.ID)
	return slices.DeleteFunc(all, k.past), err
}

// everyChild returns those, too.
func (s *Service) everyChild(ctx context.Context, parent job.ID) (kids, error) {
	tree, err := s.store.Tree(ctx, parent)
	if err != nil {
		return nil, missing(err)
	}
	return slices.DeleteFunc(tree, func(i *job.Info) bool { return i.Parent != parent }), nil
}

// past tells whether a child of the job belongs to an earlier repetition of it. One that is to run never does, whatever its number.
func (k *known) past(i *job.Info) bool {
	var last int
	raw := k.state[keyPast]
	return raw != nil && json.Unmarshal(raw, &last) == nil && i.ID.Number() <= last && (!isOpen(i) || i.Status == job.Terminating)
}

// pastFor is what is kept of a job that repeats, whose children are over.
func (all kids) pastFor() map[string]json.RawMessage {
	last := 0
	for _, i := range all {
		last = max(last, i.ID.Number())
	}
	return map[string]json.RawMessage{keyPast: json.RawMessage(strconv.Itoa(last))}
}

// forget deletes children of earlier repetitions. Nobody is told of them any more, so those that it cannot delete are left to the end of the
// next repetition.
func (s *Service) forget(ctx context.Context, all kids) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), handover)
	defer cancel()
	for _, i := range all {
		err := s.store.Terminate(ctx, i.ID)
		if err == nil {
			err = s.settle(ctx, i.ID)
		}
		if err == nil {
			err = s.store.Delete(ctx, i.ID)
		}
		if err != nil && !errors.Is(err, job.ErrNotFound) {
			return
		}
	}
}

// isOpen tells whether a child is to run yet.
func isOpen(i *job.Info) bool { return !i.Status.Settled() && i.Status != job.Failed }

// open returns one of those that are to run yet, any; empty: there is none.
func (all kids) open() job.ID {
	var open []job.ID
	for _, i := range all {
		if isOpen(i) {
			open = append(open, i.ID)
		}
	}
	if len(open) == 0 {
		return ""
	}
	return open[rand.IntN(len(open))]
}

// with are those that have a status.
func (all kids) with(status job.Status) (some kids) {
	for _, i := range all {
		if i.Status == status {
			some = append(some, i)
		}
	}
	return some
}

// told is what a parent is told of them.
func (s *Service) told(ctx context.Context, all kids) ([]map[string]any, error) {
	out := make([]map[string]any, 0, len(all))
	for _, i := range all {
		m, ok := memoOf(i)
		if !ok {
			continue
		}
		state, err := s.store.State(ctx, i.ID, keyData)
		if err != nil {
			return nil, err
		}
		k := &known{Info: i, memo: m, state: state}
		out = append(out, map[string]any{"data": k.data(), "jobID": k.Number})
	}
	return out, nil
}

// goes has the children go that wait for the end of the run of their parent.
func (all kids) goes() (writes []store.Write) {
	for _, i := range all {
		if p, ok := i.Port(port.Input, goPort); ok && i.Status == job.Suspended && p.Total == 0 {
			writes = append(writes, store.Write{Job: i.ID, Dir: port.Input, Port: goPort, Items: []json.RawMessage{json.RawMessage("true")}})
		}
	}
	return writes
}
