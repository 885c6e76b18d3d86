package redisstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/bsm/redislock"

	"github.com/weirworks/weir/internal/failpoint"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
)

// remark is how long a mark of a delete is relied on before it is made anew. The store
// forgets marks after a minute.
const remark = 15 * time.Second

// Delete implements store.Family. The job is marked first, and so are those below it that
// were adopted from other trees: from then on nothing below can be forced back to life
// while it is looked at.
func (s *Store) Delete(ctx context.Context, id job.ID) error {
	d := deletion{store: s, token: rand.Text()}
	err := d.mark(ctx, id)
	if err == nil {
		err = d.look(ctx, id)
	}
	if err == nil {
		failpoint.Hit(failpoint.MidDelete)
		err = d.act(ctx, id, "delete")
		if err == nil {
			return nil
		}
	}
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	for _, marked := range d.marked {
		_ = d.act(after, marked, "unmark") // else the mark ends by itself
	}
	return err
}

// deletion is one call of Delete.
type deletion struct {
	store  *Store
	token  string
	marked []job.ID
	at     time.Time // when the first of them was marked last
}

func (d *deletion) act(ctx context.Context, id job.ID, step string) error {
	return d.store.act(ctx, scriptDelete, id, "", string(id), step, d.token)
}

func (d *deletion) mark(ctx context.Context, id job.ID) error {
	if err := d.act(ctx, id, "mark"); err != nil {
		return err
	}
	if len(d.marked) == 0 {
		d.at = time.Now()
	}
	d.marked = append(d.marked, id)
	return nil
}

// look finds out whether all below the job is terminated, and marks what must be.
func (d *deletion) look(ctx context.Context, id job.ID) error {
	var alive job.ID
	var marking error
	err := d.store.walk(ctx, id, 1, func(i *job.Info) bool {
		if i.Status != statemachine.Terminated {
			alive = i.ID
			return false
		}
		if i.ID != id && i.Parent != "" && i.Parent.Tree() != i.ID.Tree() {
			marking = d.mark(ctx, i.ID)
		}
		if time.Since(d.at) > remark {
			marking = errors.Join(marking, d.remark(ctx))
		}
		return marking == nil
	})
	if alive != "" {
		return fmt.Errorf("%w: job %s, below job %s, is not terminated", job.ErrStatus, alive, id)
	}
	return errors.Join(err, marking)
}

// remark makes the marks last longer.
func (d *deletion) remark(ctx context.Context) error {
	marked := d.marked
	d.marked = nil
	for _, id := range marked {
		if err := d.mark(ctx, id); err != nil {
			d.marked = marked
			return err
		}
	}
	return nil
}

// Adopt implements store.Family. Adoptions of a namespace happen one after another, so that
// two cannot make a circle together. The parent's list of children decides: until it has
// the child, nobody sees a change.
func (s *Store) Adopt(ctx context.Context, parent, child job.ID, name string) error {
	ctx, release, err := s.lockFamilies(ctx, familyTries)
	if err != nil {
		return err
	}
	defer release()
	info, err := s.Info(ctx, child)
	if err != nil {
		return err
	}
	if info.Parent != "" {
		return hasParent(info, parent)
	}
	for kind, key := range map[string]string{"sequential": info.SequentialKey, "unique": info.UniqueKey} {
		if key != "" && child.IsRoot() {
			return fmt.Errorf("%w: job %s has the %s key %.80q, which a child cannot have: start it without one", job.ErrStatus, child, kind, key)
		}
	}
	for up := parent; up != ""; {
		if up == child {
			return fmt.Errorf("%w: job %s cannot become a child of itself or of a job below it", job.ErrStatus, child)
		}
		above, err := s.Info(ctx, up)
		if err != nil {
			return err
		}
		up = above.Parent
	}
	if err := s.adopt(ctx, child, "offer", child, parent, name); err != nil {
		return err
	}
	failpoint.Hit(failpoint.MidAdopt)
	if err := s.adopt(ctx, parent, "accept", child, parent, name); err != nil {
		if !definite(err) {
			return err // the child stays in doubt: the parent's list decides
		}
		return errors.Join(err, s.adopt(context.WithoutCancel(ctx), child, "withdraw", child, parent, name))
	}
	failpoint.Hit(failpoint.AfterAdoptAccepted)
	err = s.adopt(ctx, child, "settle", child, parent, name)
	if errors.Is(err, job.ErrNotFound) { // deleted meanwhile
		return errors.Join(err, s.adopt(context.WithoutCancel(ctx), parent, "dismiss", child, parent, name))
	}
	return err
}

// hasParent says what to do before a job that has a parent is adopted.
func hasParent(i *job.Info, by job.ID) error {
	if i.Parent == by {
		return fmt.Errorf("%w: job %s is the child %q of job %s already; to rename it, disown it, and adopt it under the new name", job.ErrStatus, i.ID, i.Name, by)
	}
	return fmt.Errorf("%w: job %s is the child %q of job %s; disown it there first", job.ErrStatus, i.ID, i.Name, i.Parent)
}

// Disown implements store.Family. First the child's pointer is put in doubt; then the
// parent's list of children decides, and both sides change in the moment when it does.
func (s *Store) Disown(ctx context.Context, parent, child job.ID) error {
	ctx, release, err := s.lockFamilies(ctx, familyTries)
	if err != nil {
		return err
	}
	defer release()
	info, err := s.Info(ctx, child)
	if err != nil {
		return err
	}
	if info.Parent != parent {
		return fmt.Errorf("%w: job %s has no child %s", job.ErrNotFound, parent, child)
	}
	if err := s.adopt(ctx, child, "doubt", child, parent, info.Name); err != nil {
		return err
	}
	err = s.adopt(ctx, parent, "dismiss", child, parent, info.Name)
	if err != nil && !errors.Is(err, job.ErrNotFound) {
		if !definite(err) {
			return err // as above
		}
		return errors.Join(err, s.adopt(context.WithoutCancel(ctx), child, "settle", child, parent, info.Name))
	}
	return s.adopt(ctx, child, "withdraw", child, parent, info.Name)
}

// definite tells whether an error is the store's answer, and not the lack of one: only
// then is it known that nothing happened.
func definite(err error) bool {
	for _, kind := range []error{job.ErrNotFound, job.ErrExists, job.ErrStatus, job.ErrPort} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// Adoptions of a namespace take turns. One that takes longer than familyPatience gives
// up before its lock ends; the sweeper finishes what it began.
const (
	familyLock     = 15 * time.Second
	familyPatience = 10 * time.Second
	familyTries    = 2000 // to get the lock, 10 ms apart
)

// lockFamilies waits until no other adoption of the namespace is going on.
func (s *Store) lockFamilies(ctx context.Context, tries int) (_ context.Context, release func(), err error) {
	lock, err := redislock.Obtain(ctx, s.rdb, s.keys.adopting(), familyLock,
		&redislock.Options{RetryStrategy: redislock.LimitRetry(redislock.LinearBackoff(10*time.Millisecond), tries)})
	if err != nil {
		return nil, nil, fmt.Errorf("waiting for other adoptions: %w", s.explain(err))
	}
	within, cancel := context.WithTimeout(ctx, familyPatience)
	return within, func() {
		cancel()
		_ = lock.Release(context.WithoutCancel(ctx)) // else it ends by itself
	}, nil
}

func (s *Store) adopt(ctx context.Context, where job.ID, step string, child, parent job.ID, name string) error {
	return s.act(ctx, scriptAdopt, where, "", step, string(child), string(parent), name)
}

// repair finishes an adoption, or the end of one, whose process died. member is what `due`
// says of it.
func (s *Store) repair(ctx context.Context, member string) error {
	var child, parent job.ID
	var name string
	if _, err := fmt.Sscanf(member, joiningMember+"%s %s %s", &child, &parent, &name); err != nil {
		return fmt.Errorf("reading %q in due: %w", member, err)
	}
	ctx, release, err := s.lockFamilies(ctx, 1) // else at the next look
	if err != nil {
		return err
	}
	defer release()
	there, err := s.single(ctx, child)
	if err != nil {
		return err
	}
	named, err := s.child(ctx, parent, name)
	if err != nil {
		return err
	}
	step := "withdraw"
	if named == child {
		step = "settle"
		if there == nil { // the child is gone: its parent forgets it
			if err := s.adopt(ctx, parent, "dismiss", child, parent, name); err != nil && !errors.Is(err, job.ErrNotFound) {
				return err
			}
		}
	}
	if err := s.adopt(ctx, child, step, child, parent, name); !errors.Is(err, job.ErrNotFound) {
		return err
	}
	return nil
}
