package redisstore

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// Write implements job.Ports.
func (s *Store) Write(ctx context.Context, id job.ID, w job.Write) error {
	if err := checkPort(id, w.Port); err != nil {
		return err
	}
	args := []any{string(id), dirArg(w.Dir), w.Port, rand.Text(), hashArg(w)}
	return s.act(ctx, scriptWrite, id, w.Port, itemArgs(args, w.Items)...)
}

// ClosePort implements job.Ports.
func (s *Store) ClosePort(ctx context.Context, id job.ID, dir port.Dir, name string) error {
	if err := checkPort(id, name); err != nil {
		return err
	}
	return s.act(ctx, scriptClose, id, name, string(id), dirArg(dir), name)
}

// Apply implements job.Control.
func (s *Store) Apply(ctx context.Context, id job.ID, event statemachine.Event) error {
	return s.act(ctx, scriptApply, id, "", string(id), string(event), rand.Text())
}

// act runs a script whose reply is {'ok' or why not, {ready jobs}}.
func (s *Store) act(ctx context.Context, p program, id job.ID, name string, args ...any) error {
	reply, err := s.run(ctx, p, s.keys.dueOf(id), args...)
	if err != nil {
		return err
	}
	var d decoder
	l := d.list(reply)
	if err := portRefusal(d.str(d.at(l, 0)), id, name); err != nil {
		return err
	}
	return s.deliver(ctx, &d, d.at(l, 1))
}

// checkPort refuses what can be no port's name: a job with a port `*` has any other.
func checkPort(id job.ID, name string) error {
	if err := port.CheckName(name); err != nil {
		return fmt.Errorf("%w of job %s: %w", job.ErrPort, id, err)
	}
	return nil
}

// portRefusal is refusal with the port's name.
func portRefusal(reason string, id job.ID, name string) error {
	switch reason {
	case "port":
		return fmt.Errorf("%w: job %s has no port %q", job.ErrPort, id, name)
	case "closed":
		return fmt.Errorf("%w: port %q of job %s is closed", job.ErrPort, name, id)
	}
	return refusal(reason, id)
}

// Peek implements job.Ports.
func (s *Store) Peek(ctx context.Context, id job.ID, dir port.Dir, name string, n int) ([]json.RawMessage, int64, error) {
	return s.Page(ctx, id, dir, name, 0, n, math.MaxInt32)
}

// Page implements job.RunReader.
func (s *Store) Page(ctx context.Context, id job.ID, dir port.Dir, name string, offset, n, bytes int) ([]json.RawMessage, int64, error) {
	if err := checkPort(id, name); err != nil || n < 1 {
		return nil, 0, err
	}
	reply, err := s.run(ctx, scriptPage, s.keys.dueOf(id), string(id), dirArg(dir), name, offset, n, bytes)
	if err != nil {
		return nil, 0, err
	}
	var d decoder
	l := d.list(reply)
	if err := portRefusal(d.str(d.at(l, 0)), id, name); err != nil {
		return nil, 0, err
	}
	head, items := d.int(d.at(l, 1)), d.raws(d.at(l, 2))
	return items, head, d.err
}

// Take implements job.Ports.
func (s *Store) Take(ctx context.Context, id job.ID, t job.Take, token string) error {
	if err := checkPort(id, t.Port); err != nil {
		return err
	}
	reply, err := s.run(ctx, scriptTake, s.keys.dueOf(id), string(id), dirArg(t.Dir), t.Port,
		strconv.FormatInt(t.Head, 10), t.N, token)
	if err != nil {
		return err
	}
	var d decoder
	reason := d.str(reply)
	if d.err != nil {
		return d.err
	}
	return portRefusal(reason, id, t.Port)
}
