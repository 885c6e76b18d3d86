package client

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
)

// settling takes dead letters out of their ports. One with which that cannot be done does not keep the others.
type settling struct {
	client  *Client
	doing   string
	instead func(*StoredLetter) (store.SettledLetter, error) // what is written in its place
	n       int                                              // how many it was done with
	failed  []*DeadLetterError
}

func (s *settling) fail(l *StoredLetter, err error) {
	s.failed = append(s.failed, &DeadLetterError{Letter: l.ID, In: l.In, Err: err})
}

// all does it with letters of any ports.
func (s *settling) all(ctx context.Context, letters []*StoredLetter) (int, error) {
	for len(letters) > 0 {
		var some, others []*StoredLetter
		for _, l := range letters {
			if l.In == letters[0].In && len(some) < letterPage {
				some = append(some, l)
			} else {
				others = append(others, l)
			}
		}
		s.port(ctx, some)
		letters = others
	}
	if len(s.failed) == 0 {
		return s.n, nil
	}
	return s.n, &DeadLettersError{Doing: s.doing, All: s.n + len(s.failed), Failed: s.failed}
}

// port does it with letters of one port.
func (s *settling) port(ctx context.Context, letters []*StoredLetter) {
	if slices.ContainsFunc(letters, func(l *StoredLetter) bool { return l.head != letters[0].head }) {
		letters = s.locate(ctx, letters)
	}
	for {
		var t store.Settlement
		if t, letters = s.settlement(ctx, letters); len(letters) == 0 {
			return
		}
		refused, err := s.client.store.Settle(ctx, letters[0].In, t)
		switch {
		case err == nil:
			s.n += len(letters)
			for _, l := range letters {
				l.settled = true
			}
			return
		case refused < 0 && errors.Is(err, job.ErrMoved):
			letters = s.locate(ctx, letters)
		case refused < 0:
			s.fail(letters[0], err)
			return
		case errors.Is(err, job.ErrTooLarge) && len(letters) > 1: // they are too much together
			half := len(letters) / 2
			s.port(ctx, letters[:half:half])
			s.port(ctx, letters[half:])
			return
		default:
			s.fail(letters[refused], err)
			letters = slices.Delete(letters, refused, refused+1)
		}
	}
}

// settlement says what is to be done with letters of one port, and with which of them it can be.
func (s *settling) settlement(ctx context.Context, letters []*StoredLetter) (store.Settlement, []*StoredLetter) {
	slices.SortFunc(letters, func(a, b *StoredLetter) int { return int(a.Number - b.Number) })
	letters = slices.CompactFunc(letters, func(a, b *StoredLetter) bool { return a.Number == b.Number })
	t, able := store.Settlement{Token: rand.Text()}, letters[:0:0]
	entry := job.RunEntry{By: actor(ctx)}
	for _, l := range letters {
		one, err := s.instead(l)
		if err == nil && len(one.Ports) > 0 && one.Ports[0].Job.Tree() != l.In.Job.Tree() {
			err = s.send(ctx, l, one)
			one = store.SettledLetter{}
		}
		if err != nil {
			s.fail(l, err)
			continue
		}
		one.Index = int(l.Number - l.head)
		t.Head, t.Letters, able = l.head, append(t.Letters, one), append(able, l)
		entry.Read = append(entry.Read, job.Movement{Job: l.In.Job, Dir: l.In.Dir, Port: l.In.Port, From: l.Number, N: 1})
		for _, to := range one.Ports {
			entry.Write = append(entry.Write, job.Movement{Job: to.Job, Dir: to.Dir, Port: to.Port, N: 1})
		}
	}
	t.Entry = entry.Encode()
	return t, able
}

// actor is who acts from outside of runs.
func actor(ctx context.Context) string {
	by := job.Actor(ctx)
	return by
}

// send writes what is to be written in the place of a letter to a job of another tree. A repetition does nothing more.
func (s *settling) send(ctx context.Context, l *StoredLetter, one store.SettledLetter) error {
	for i, to := range one.Ports {
		w := store.Write{Dir: to.Dir, Port: to.Port, Items: one.Items[i : i+1], Once: "dead letter " + l.ID + " of " + string(l.In.Job)}
		w.Entry = outsideEntry(to.Job, w, job.ContextOf(ctx))
		if err := s.client.store.Write(ctx, to.Job, w); err != nil {
			return err
		}
	}
	return nil
}

// locate looks where letters of one port lie by now, and returns those that are there unchanged.
func (s *settling) locate(ctx context.Context, letters []*StoredLetter) []*StoredLetter {
	found, err := s.find(ctx, letters)
	if err != nil {
		s.fail(letters[0], err)
		return nil
	}
	return slices.DeleteFunc(letters, func(l *StoredLetter) bool {
		now := found[l.ID]
		switch {
		case now == nil:
			s.fail(l, fmt.Errorf("%w: somebody else has requeued, discarded or taken it", job.ErrNotFound))
		case now.sum != l.sum:
			s.fail(l, fmt.Errorf("%w: somebody has changed the dead letter since it was read; look at it again", job.ErrMoved))
		default:
			l.Number, l.head = now.Number, now.head
			return false
		}
		return true
	})
}

// find returns the letters with the IDs of some, by ID. One that is alone is looked for first where it should be.
func (s *settling) find(ctx context.Context, letters []*StoredLetter) (map[string]*StoredLetter, error) {
	from, first := letters[0].In, letters[0]
	for index, tries := 0, 0; len(letters) == 1 && tries < 2; tries++ {
		items, head, err := s.client.store.Page(ctx, from.Job, from.Dir, from.Port, index, 1, 1)
		if err != nil {
			return nil, err
		}
		if len(items) > 0 && head+int64(index) == first.Number {
			if l := letterOf(from, first.Number, head, items[0]); l != nil && l.ID == first.ID {
				return map[string]*StoredLetter{l.ID: l}, nil
			}
		}
		index = int(max(first.Number-head, 0))
	}
	wanted := make(map[string]bool, len(letters))
	for _, l := range letters {
		wanted[l.ID] = true
	}
	found := make(map[string]*StoredLetter, len(letters))
	var failed error
	s.client.portLetters(ctx, from, &LetterFilter{}, func(page []*StoredLetter, err error) bool {
		failed = err
		for _, l := range page {
			if wanted[l.ID] {
				found[l.ID] = l
			}
		}
		return err == nil && len(found) < len(wanted)
	})
	return found, failed
}
