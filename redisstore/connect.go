package redisstore

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// Connect implements store.PortSetter.
func (s *Store) Connect(ctx context.Context, id job.ID, dir port.Dir, name string, to []job.PortRef) ([]json.RawMessage, error) {
	if err := checkPort(id, name); err != nil {
		return nil, err
	}
	if len(to) == 0 {
		return nil, fmt.Errorf("%w %q of job %s is connected to none: say which ports its messages go to", job.ErrPort, name, id)
	}
	for _, t := range to {
		if t.Job.Tree() != id.Tree() && t.Dir != port.Input {
			return nil, fmt.Errorf("%w %q of job %s is an Out port in another tree than job %s: connect In ports of other trees only", job.ErrPort, t.Port, t.Job, id)
		}
		if err := checkPort(t.Job, t.Port); err != nil {
			return nil, err
		}
	}
	there, err := s.single(ctx, id)
	if err != nil {
		return nil, err
	}
	m := move{id: id, dir: dir, name: name, token: rand.Text(), to: to}
	if there != nil { // else the script says so
		p, _ := there.Port(dir, name)
		if m.upto = p.Total; p.Dir == dir {
			if err := s.connectAbroad(ctx, id, to, p.Default); err != nil {
				return nil, err
			}
		}
	}
	items, err := m.run(ctx, s)
	return items, errors.Join(err, s.secrets.showMessages(items))
}

// connectAbroad looks whether the ports that are in other trees than a job can take messages, and gives them a default, if
// it is another one than they have.
func (s *Store) connectAbroad(ctx context.Context, id job.ID, to []job.PortRef, value json.RawMessage) error {
	var change []job.PortRef
	for _, t := range to {
		if t.Job.Tree() == id.Tree() {
			continue
		}
		there, err := s.single(ctx, t.Job)
		if err != nil {
			return err
		}
		if there == nil {
			return t.Job.Missing()
		}
		p, found := there.Port(t.Dir, t.Port)
		if !found {
			p, found = there.Port(t.Dir, port.Any)
		}
		switch {
		case !found:
			return portRefusal("port", t.Job, t.Port)
		case p.Closed:
			return portRefusal("closed", t.Job, t.Port)
		case value != nil && !bytes.Equal(value, p.Default):
			change = append(change, t)
		}
	}
	for _, t := range change {
		if err := s.SetDefault(ctx, t.Job, store.Default{Dir: t.Dir, Port: t.Port, Value: value}); err != nil {
			return err
		}
	}
	return nil
}

// move is one call of Connect. It goes in pieces, each one script; should its process die, the sweeper goes on
// with it.
type move struct {
	id    job.ID
	dir   port.Dir
	name  string
	token string
	upto  int64 // the position behind the last message that is moved: others come too late
	to    []job.PortRef

	pieces int // that were moved: the first copies the default, too
}

// resume goes on with a move whose process died: member is what `due` says of it.
func (s *Store) resume(ctx context.Context, member string) error {
	f := strings.Fields(member)
	if len(f) < 5 || len(f)%3 != 2 {
		return fmt.Errorf("reading %q in due: that is no move", member)
	}
	upto, err := strconv.ParseInt(f[4], 10, 64)
	if err != nil {
		return fmt.Errorf("reading %q in due: %w", member, err)
	}
	m := move{id: job.ID(f[1]), dir: port.Dir(f[2][0]), name: f[3], token: rand.Text(), upto: upto, pieces: 1}
	for ref := range slices.Chunk(f[5:], 3) {
		m.to = append(m.to, job.PortRef{Job: job.ID(ref[0]), Dir: port.Dir(ref[1][0]), Port: ref[2]})
	}
	_, err = m.run(ctx, s)
	return err
}

// run moves what is left to be moved, and returns it.
func (m *move) run(ctx context.Context, s *Store) ([]json.RawMessage, error) {
	var all []json.RawMessage
	due := s.keys.dueOf(m.id)
	for {
		m.pieces++
		args := []any{string(m.id), dirArg(m.dir), m.name, m.token, m.pieces, m.upto, len(m.to)}
		for _, t := range m.to {
			args = append(args, string(t.Job), dirArg(t.Dir), t.Port)
		}
		reply, err := s.run(ctx, scriptConnect, due, args...)
		if err != nil {
			return all, err
		}
		var d decoder
		l := d.list(reply)
		if err := portRefusal(d.str(d.at(l, 0)), m.id, m.name); err != nil {
			return all, err
		}
		all = append(all, d.raws(d.at(l, 2))...)
		more := d.int(d.at(l, 3)) == 1
		if err := s.deliver(ctx, due, &d, d.at(l, 1)); err != nil || !more {
			return all, err
		}
	}
}
