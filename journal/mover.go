package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/port"
)

const (
	moveLines = 2000        // payloads that are moved together, at most
	moveTime  = time.Minute // for which they are reserved
	firstWait = 50 * time.Millisecond
	lastWait  = 2 * time.Second // between two tries, while Redis cannot be reached
)

// Store is where payloads become jobs: redisstore.Store is one.
type Store interface {
	Types
	// NamespaceID is the ID that the namespace has on one Redis alone, see Journal.Bind.
	NamespaceID(ctx context.Context) (string, error)
	// Where is the address of its Redis.
	Where() string
	// CreateArrivals creates the jobs of payloads of an epoch, each once however often it is called: those of lower positions first.
	CreateArrivals(ctx context.Context, epoch string, all []store.Arrival) error
}

// Mover makes jobs of the payloads of a journal. A journal has one at a time.
type Mover struct {
	Journal *Journal
	Store   Store
	// Held tells whether this process may still move payloads, such as Held of its system ID; nil means that it may.
	Held func() bool
	// Ports are those of jobs of types that nobody has registered yet, as in Plans.
	Ports []port.Spec
	// Logger is told when payloads cannot be moved. Nil means slog.Default.
	Logger *slog.Logger

	moved   atomic.Int64
	problem atomic.Pointer[string]
}

// Moved is how many payloads were moved.
func (m *Mover) Moved() int64 { return m.moved.Load() }

// Problem is why payloads are not moved at the moment; empty if nothing is wrong.
func (m *Mover) Problem() string {
	if p := m.problem.Load(); p != nil {
		return *p
	}
	return ""
}

var errNotHeld = errors.New("this process does not have its system ID now")

// Run moves payloads until ctx ends, or the journal is closed. What goes wrong is logged, and tried again without end: the payloads stay in the
// journal.
func (m *Mover) Run(ctx context.Context) error {
	log, wait := cmp.Or(m.Logger, slog.Default()), time.Duration(0)
	plans := &Plans{Types: m.Store, Ports: m.Ports}
	failing := false
	for ctx.Err() == nil {
		err := m.move(ctx, plans)
		switch {
		case errors.Is(err, ErrClosed) || ctx.Err() != nil:
			return nil
		case err == nil:
			if failing {
				log.Info("payloads of the journal are moved to Redis again")
			}
			wait, failing = 0, false
			m.problem.Store(nil)
			continue
		case !failing && !errors.Is(err, errNotHeld):
			failing = true
			log.Error("payloads of the journal are not moved to Redis now; they are kept, and it is tried again", "error", err)
		}
		m.problem.Store(new(err.Error()))
		wait = min(max(2*wait, firstWait), lastWait)
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
		case <-timer.C:
		}
	}
	return nil
}

// move moves the next payloads. If it does not come to its end they come again, the same ones first.
func (m *Mover) move(ctx context.Context, plans *Plans) error {
	if m.Held != nil && !m.Held() {
		return errNotHeld
	}
	if p := m.problem.Load(); p != nil && *p == errNotHeld.Error() {
		m.problem.Store(nil) // it may be long until there is a payload
	}
	token, err := m.Journal.ReadReserve(ctx, moveLines, moveTime)
	if err != nil {
		return err
	}
	if err := m.carry(ctx, token, plans); err != nil {
		m.Journal.Return(token)
		return err
	}
	return nil
}

func (m *Mover) carry(ctx context.Context, token Token, plans *Plans) error {
	entries, err := m.Journal.Read(token)
	if err != nil {
		return err
	}
	for from := 0; from < len(entries); {
		epoch, to := entries[from].Epoch, from
		var all []store.Arrival
		for ; to < len(entries) && entries[to].Epoch == epoch; to++ {
			e := &entries[to]
			plan, err := plans.Plan(ctx, e.Type, e.Payload)
			if err != nil {
				return fmt.Errorf("payload %s of type %s: %w", e.ID, e.Type, err)
			}
			all = append(all, store.Arrival{ID: e.ID, Position: e.Position, Plan: plan, By: By})
		}
		if m.Held != nil && !m.Held() {
			return errNotHeld
		}
		if err := m.bind(ctx); err != nil {
			return err
		}
		if err := m.Store.CreateArrivals(ctx, epoch, all); err != nil {
			return err
		}
		from = to
	}
	if err := m.Journal.Ack(token); err != nil {
		return err
	}
	m.moved.Add(int64(len(entries)))
	return nil
}

// Check refuses a journal of which payloads may have gone to another Redis, as Journal.Bind does: so that a server need not start before that is known. A Redis that does not answer
// is asked again by Run.
func (m *Mover) Check(ctx context.Context) error {
	if !m.Journal.bound() {
		return nil
	}
	if err := m.bind(ctx); errors.Is(err, ErrOther) {
		return err
	}
	return nil
}

// bind makes sure that the payloads go where those before them went. It is asked each time: another Redis may answer at the same address.
func (m *Mover) bind(ctx context.Context) error {
	id, err := m.Store.NamespaceID(ctx)
	if err != nil {
		return err
	}
	return m.Journal.Bind(id, m.Store.Where())
}
