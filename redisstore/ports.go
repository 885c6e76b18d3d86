package redisstore

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// Write implements store.Ports.
func (s *Store) Write(ctx context.Context, id job.ID, w store.Write) error {
	args, err := s.writeArgs(id, w)
	if err != nil {
		return err
	}
	return s.actSeated(ctx, scriptWrite, id, w.Port, args...)
}

// writeArgs are the arguments of port_write.lua, up to what follows.
func (s *Store) writeArgs(id job.ID, w store.Write) ([]any, error) {
	if err := checkPort(id, w.Port); err != nil {
		return nil, err
	}
	quiet := ""
	if w.NoWake {
		quiet = "1"
	}
	items, err := s.secrets.hideMessages(w.Items)
	if err != nil {
		return nil, err
	}
	entry, err := s.secrets.hideText(job.KindLog, id, w.Entry)
	if err != nil {
		return nil, err
	}
	token, kept := rand.Text(), time.Minute
	if w.Once != "" {
		sum := sha256.Sum256([]byte(string(id) + "\x00" + dirArg(w.Dir) + "\x00" + w.Port + "\x00" + w.Once))
		token, kept = "once:"+hex.EncodeToString(sum[:16]), job.OnceFor
	}
	args := []any{string(id), dirArg(w.Dir), w.Port, token, kept.Milliseconds(), hashArg(w), quiet, entry}
	return itemArgs(args, items), nil
}

// ClosePort implements store.Ports.
func (s *Store) ClosePort(ctx context.Context, id job.ID, dir port.Dir, name string) error {
	if err := checkPort(id, name); err != nil {
		return err
	}
	entry, err := s.byHand(ctx, id, "closed", dir.String()+" port "+name)
	if err != nil {
		return err
	}
	return s.act(ctx, scriptClose, id, name, string(id), dirArg(dir), name, entry)
}

// SetPorts implements store.PortSetter.
func (s *Store) SetPorts(ctx context.Context, id job.ID, ports []port.Spec) error {
	ports, err := s.secrets.hideSpecs(ports)
	if err != nil {
		return err
	}
	return s.act(ctx, scriptSetPorts, id, "", portsArgs([]any{string(id), rand.Text()}, ports)...)
}

// SetDefault implements store.PortSetter.
func (s *Store) SetDefault(ctx context.Context, id job.ID, v store.Default) error {
	if err := checkPort(id, v.Port); err != nil {
		return err
	}
	value, err := s.secrets.hideDefault(v.Value)
	if err != nil {
		return err
	}
	return s.act(ctx, scriptDefault, id, v.Port, string(id), rand.Text(), dirArg(v.Dir), v.Port, setArg(value), []byte(value))
}

// act runs a script whose reply is {'ok' or why not, {ready jobs}}.
func (s *Store) act(ctx context.Context, p program, id job.ID, name string, args ...any) error {
	_, err := s.acted(ctx, p, id, name, args...)
	return err
}

// acted is act that returns the whole reply.
func (s *Store) acted(ctx context.Context, p program, id job.ID, name string, args ...any) ([]any, error) {
	due := s.keys.dueOf(id)
	reply, err := s.run(ctx, p, due, args...)
	if err != nil {
		return nil, err
	}
	var d decoder
	l := d.list(reply)
	if err := portRefusal(d.str(d.at(l, 0)), id, name); err != nil {
		return nil, s.portHint(ctx, id, name, err)
	}
	return l, s.deliver(ctx, due, &d, d.at(l, 1))
}

// actSeated is act for a script that can also begin a run of a job that it makes ready. It does so
// if an engine of this process is idle, which then runs the job.
func (s *Store) actSeated(ctx context.Context, p program, id job.ID, name string, args ...any) error {
	freeSlot := s.broker.FreeSlot()
	if freeSlot == nil {
		return s.act(ctx, p, id, name, followArgs(args, nil, nil, 0)...)
	}
	defer freeSlot.Leave()
	args = append(followArgs(args, &freeSlot.Begin, freeSlot.Types, s.keys.shards), len(freeSlot.Queues))
	for _, q := range freeSlot.Queues {
		args = append(args, q)
	}
	l, err := s.acted(ctx, p, id, name, args...)
	if err != nil {
		return err
	}
	var d decoder
	next := d.str(d.at(l, 2))
	if next == "" {
		return d.err
	}
	snap, err := s.seen(ctx, d.at(l, 3), job.ID(next), freeSlot.Begin)
	if err == nil && !freeSlot.Run(snap) {
		_ = s.handBack(ctx, snap, 0, "") // else the sweeper finds it, when its lease is over
	}
	return nil // it is written; why a job cannot be decoded, whoever takes it next says
}

// checkPort refuses what can be no port's name: a job with a port `*` has any other.
func checkPort(id job.ID, name string) error {
	if err := port.CheckName(name); err != nil {
		return fmt.Errorf("%w of job %s: %w", job.ErrPort, id, err)
	}
	return nil
}

// portHint adds to the refusal of a port that a job does not have which ports it has, if they can be read.
func (s *Store) portHint(ctx context.Context, id job.ID, name string, refused error) error {
	if !errors.As(refused, &noPort{}) {
		return refused
	}
	fields, err := s.rdb.HKeys(ctx, s.keys.job(id, "")).Result()
	if err != nil {
		return refused
	}
	if len(fields) == 0 {
		found, _ := s.recorded(ctx, []job.ID{id}) // the hint is lost if it cannot be read
		fields = slices.Collect(maps.Keys(found[id].fields))
	}
	var known []string
	for _, f := range fields {
		if side, one, ok := strings.Cut(f, "."); ok && (side == "i" || side == "o") && one != "*" {
			known = append(known, one)
		}
	}
	slices.Sort(known)
	return fmt.Errorf("%w: %s", refused, port.Suggest(name, slices.Compact(known)))
}

// noPort is the refusal of a port that a job does not have.
type noPort struct {
	job  job.ID
	name string
}

func (e noPort) Error() string {
	return fmt.Sprintf("%s: job %s has no port %q", job.ErrPort, e.job, e.name)
}
func (e noPort) Unwrap() error { return job.ErrPort }

// closedPort says that a port gets no more messages. What it wraps says no more than that.
type closedPort struct {
	job  job.ID
	name string
}

func (e closedPort) Error() string { return fmt.Sprintf("port %q of job %s is closed", e.name, e.job) }
func (e closedPort) Unwrap() error { return job.ErrClosed }

// portRefusal is refusal with the port's name.
func portRefusal(reason string, id job.ID, name string) error {
	switch reason {
	case "port":
		return noPort{id, name}
	case "full":
		return fmt.Errorf("%w: port %q of job %s, or one that it leads to", job.ErrFull, name, id)
	case "closed":
		return closedPort{id, name}
	}
	return refusal(reason, id)
}

// Peek implements store.Ports.
func (s *Store) Peek(ctx context.Context, id job.ID, dir port.Dir, name string, n int) ([]json.RawMessage, int64, error) {
	return s.Page(ctx, id, dir, name, 0, n, job.MaxPeek)
}

// Page implements store.RunReader.
func (s *Store) Page(ctx context.Context, id job.ID, dir port.Dir, name string, offset, n, bytes int) ([]json.RawMessage, int64, error) {
	if err := checkPort(id, name); err != nil {
		return nil, 0, err
	}
	if offset < 0 || n < 0 {
		return nil, 0, fmt.Errorf("%w: %d messages behind the first %d of port %q of job %s: use 0 or more of both", job.ErrValue, n, offset, name, id)
	}
	if n == 0 {
		return nil, 0, nil
	}
	var items []json.RawMessage
	var head int64
	for tries, left := 0, bytes; ; {
		some, at, more, err := s.page(ctx, id, dir, name, offset+len(items), min(n-len(items), pageItems), min(left, pageBytes))
		if err != nil {
			return nil, 0, err
		}
		if len(items) > 0 && at != head {
			if tries++; tries > pageTries {
				break // what was read is right as it was when it was
			}
			items, left = nil, bytes // messages were taken meanwhile: from the beginning
			continue
		}
		items, head = append(items, some...), at
		for _, m := range some {
			left -= len(m)
		}
		if !more || left <= 0 || len(items) >= n {
			break
		}
	}
	if err := s.secrets.showMessages(items); err != nil {
		return nil, 0, fmt.Errorf("port %q of job %s: %w", name, id, err)
	}
	return items, head, nil
}

const (
	// pageBytes is about how many bytes of messages one script answers with, and pageItems how many messages: Redis
	// does nothing else meanwhile.
	pageBytes = 1 << 20
	pageItems = 5000
	// pageTries is how often messages are read anew that are taken while they are read.
	pageTries = 3
)

// page reads some messages, and tells whether there are more behind them.
func (s *Store) page(ctx context.Context, id job.ID, dir port.Dir, name string, offset, n, bytes int) (items []json.RawMessage, head int64, more bool, err error) {
	reply, err := s.run(ctx, scriptPage, s.keys.dueOf(id), string(id), dirArg(dir), name, offset, n, bytes)
	if err != nil {
		return nil, 0, false, err
	}
	var d decoder
	l := d.list(reply)
	if err := portRefusal(d.str(d.at(l, 0)), id, name); err != nil {
		return nil, 0, false, s.portHint(ctx, id, name, err)
	}
	items, head, more = d.raws(d.at(l, 2)), d.int(d.at(l, 1)), d.int(d.at(l, 3)) == 1
	return items, head, more, d.err
}

// Take implements store.Ports.
func (s *Store) Take(ctx context.Context, id job.ID, t store.Take, token string) error {
	if err := checkPort(id, t.Port); err != nil {
		return err
	}
	if t.N < 0 {
		return fmt.Errorf("%w: %d messages cannot be taken of port %q of job %s: use 0 or more", job.ErrValue, t.N, t.Port, id)
	}
	return s.act(ctx, scriptTake, id, t.Port, string(id), dirArg(t.Dir), t.Port, strconv.FormatInt(t.Head, 10), t.N, token)
}
