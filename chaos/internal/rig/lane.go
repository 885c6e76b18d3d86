package rig

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/weirworks/weir/chaos/internal/crew"
	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// lane is what one sender has sent to one port: the numbers from 1.
type lane struct {
	name string

	mu   sync.Mutex
	sent []sending // of number i+1
}

// sending is what is known of a message that was sent.
type sending struct {
	acked bool // else it may have arrived or not, and at any time
	began time.Time
	at    time.Time // when the answer came
}

// send sends messages for so long, or until ctx ends or the job is gone.
func (l *lane) send(ctx context.Context, r *rig, h *client.Handle, d time.Duration) {
	limit, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	for pause(limit, r.between(5*time.Millisecond, 70*time.Millisecond)) {
		if gone := l.write(ctx, r, h, 1+r.intn(3)); gone {
			return
		}
	}
}

// write sends some messages in one call, which are together taken or not.
func (l *lane) write(ctx context.Context, r *rig, h *client.Handle, n int) (gone bool) {
	first := len(l.sent)
	batch := make([]any, n)
	for i := range batch {
		batch[i] = crew.Message{N: first + i + 1}
	}
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTime)
	defer cancel()
	began := time.Now()
	err := h.Write(call, "in", batch...)
	now := time.Now()
	l.mu.Lock()
	for range n {
		l.sent = append(l.sent, sending{acked: err == nil, began: began, at: now})
	}
	l.mu.Unlock()
	r.count(sent, n)
	if err != nil {
		r.count(unknown, n)
	}
	return errors.Is(err, job.ErrNotFound)
}

// check compares what came to a sink with what was sent.
func (l *lane) check(r *rig, got []crew.Message, ways []string) {
	r.count(received, len(got))
	for _, way := range ways {
		times := make([]int, len(l.sent)+1)
		for _, m := range got {
			if !strings.Contains(m.Path, way) {
				continue
			}
			if m.N < 1 || m.N > len(l.sent) {
				r.bad(duplicated, "%s: message %d, which was never sent, came on way %s", l.name, m.N, way)
				continue
			}
			times[m.N]++
		}
		for n, s := range l.sent {
			switch c := times[n+1]; {
			case c == 0 && s.acked && !r.forgiven(l.sent, n, times):
				r.bad(lost, "%s: message %d, acknowledged %s after the start, did not come on way %s", l.name, n+1, s.at.Sub(r.began).Round(time.Millisecond), way)
			case c > 1:
				r.bad(duplicated, "%s: message %d came %d times on way %s", l.name, n+1, c, way)
			}
		}
	}
	last := map[string]int{} // by path
	for _, m := range got {
		if m.N < 1 || m.N > len(l.sent) || !l.sent[m.N-1].acked {
			continue
		}
		if m.N <= last[m.Path] {
			r.bad(reordered, "%s: message %d came after %d on %s", l.name, m.N, last[m.Path], m.Path)
		}
		last[m.Path] = m.N
	}
}

// check implements round.
func (f *flow) check(ctx context.Context, r *rig) error {
	tree, err := r.treeOf(ctx, f.root, f.created)
	if tree == nil {
		return err
	}
	byName := map[string]*job.Info{}
	for _, i := range tree {
		byName[i.Name] = i
	}
	sinks := f.sinks
	if sinks == nil {
		sinks = []job.ID{byName["d"].ID}
	}
	for _, i := range tree {
		r.settled(f.name, i, f.ends)
	}
	for _, id := range sinks {
		h, err := r.client.Find(ctx, string(id))
		if err != nil {
			return err
		}
		got, err := drain[crew.Message](ctx, h, "all")
		if err != nil {
			return err
		}
		f.lane.check(r, got, f.plan.ways)
		for name, text := range f.plan.seen {
			if i := byName[name]; i != nil {
				if err := r.passed(ctx, f.name, i.ID, got, text); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// treeOf reads the tree of a job. It is nil if that it was created may have been lost in an outage.
func (r *rig) treeOf(ctx context.Context, h *client.Handle, created span) ([]*job.Info, error) {
	tree, err := h.Tree(ctx)
	if errors.Is(err, job.ErrNotFound) && r.undone(created) {
		r.count(lostByOutage, 1)
		r.lostTrees[h.ID()] = true
		return nil, nil
	}
	return tree, err
}

// settled checks that a job has come to rest: completed if it was to end, with nothing unread.
func (r *rig) settled(name string, i *job.Info, ends bool) {
	r.count(jobsSeen, 1)
	suspended := i.Status == statemachine.Completed || !ends && i.Status == statemachine.Suspended
	if !suspended {
		r.bad(stuck, "%s: job %s (%s) is %s: %s", name, i.ID, i.Name, i.Status, i.Reason)
	}
	for _, p := range i.Ports {
		if p.Dir == port.Input && p.Waiting > 0 {
			r.bad(stuck, "%s: %d messages wait in port %s of job %s, which is %s", name, p.Waiting, p.Name, i.ID, i.Status)
		}
	}
}

// passed checks that the state of a job says what the messages that it passed on imply.
func (r *rig) passed(ctx context.Context, name string, id job.ID, got []crew.Message, text string) error {
	count, sum := 0, uint32(0)
	for _, m := range got {
		if strings.Contains(m.Path, text) {
			count, sum = count+1, crew.Sum(sum, m.N)
		}
	}
	h, err := r.client.Find(ctx, string(id))
	if err != nil {
		return err
	}
	state, err := h.State(ctx, crew.CountKey, crew.SumKey)
	if err != nil {
		return err
	}
	if n, s := number[int](state[crew.CountKey]), number[uint32](state[crew.SumKey]); n != count || s != sum {
		r.bad(wrongState, "%s: job %s says that it passed on %d messages, sum %d; it was %d, sum %d", name, id, n, s, count, sum)
	}
	return nil
}

// number decodes a number of a state; what is missing is zero.
func number[T int | uint32](raw json.RawMessage) (v T) {
	if raw != nil {
		_ = port.Decode(raw, &v) // zero will not be what is expected
	}
	return v
}

// check implements round.
func (d *deed) check(ctx context.Context, r *rig) error {
	tree, err := r.treeOf(ctx, d.root, d.created)
	if tree == nil {
		return err
	}
	from := d.root
	for _, i := range tree {
		r.settled(d.name, i, true)
		if d.from != "" && i.Name == d.from {
			if from, err = r.client.Find(ctx, string(i.ID)); err != nil {
				return err
			}
		}
		if i.Type == "Kid" && i.Steps != 1 {
			r.bad(wrongState, "%s: job %s has run %d times instead of once", d.name, i.ID, i.Steps)
		}
	}
	if d.single != 0 {
		got, err := drain[int](ctx, from, d.port)
		if err == nil && (len(got) != 1 || got[0] != d.single) {
			r.bad(wrongState, "%s: it says %v instead of [%d]", d.name, got, d.single)
		}
		return err
	}
	got, err := drain[crew.Message](ctx, from, d.port)
	if err != nil {
		return err
	}
	r.numbers(d.name, got, d.wants)
	return nil
}

// numbers compares what a job said with what it was to say.
func (r *rig) numbers(name string, got []crew.Message, wants []int) {
	r.count(received, len(got))
	times := map[int]int{}
	for i, m := range got {
		times[m.N]++
		if i > 0 && m.N < got[i-1].N {
			r.bad(reordered, "%s: %d came after %d", name, m.N, got[i-1].N)
		}
	}
	for _, n := range wants {
		switch {
		case times[n] == 0:
			r.bad(lost, "%s: %d is missing", name, n)
		case times[n] > 1:
			r.bad(duplicated, "%s: %d came %d times", name, n, times[n])
		}
		delete(times, n)
	}
	for n := range times {
		r.bad(duplicated, "%s: %d came, which is not in what it was to say", name, n)
	}
}
