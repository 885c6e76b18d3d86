package redisstore_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
)

// uniqueModel is what unique keys mean: of each key the tree that was created last.
type uniqueModel struct {
	*env
	pass func(time.Duration)
	now  time.Duration
	keys []string
	last map[string]*uniqueJob
	all  []*uniqueJob
}

type uniqueJob struct {
	id   job.ID
	key  string
	at   time.Duration
	over bool
}

func (m *uniqueModel) start(t *rapid.T) {
	key := rapid.SampledFrom(m.keys).Draw(t, "key")
	by := job.UniqueBy{Key: key, For: rapid.SampledFrom([]time.Duration{0, 0, time.Minute, time.Hour}).Draw(t, "for")}
	there := m.last[key]
	if there != nil && (by.For == 0 && !there.over || there.at+by.For > m.now) {
		m.same(there.id, by)
		return
	}
	j := &uniqueJob{id: m.fresh(by, job.Retain(job.Forever)), key: key, at: m.now}
	m.last[key], m.all = j, append(m.all, j)
}

// one draws a tree that is there, and is over or not.
func (m *uniqueModel) one(t *rapid.T, over bool) *uniqueJob {
	var some []*uniqueJob
	for _, j := range m.all {
		if j.over == over {
			some = append(some, j)
		}
	}
	if len(some) == 0 {
		t.Skip("there is no such job yet: another step is drawn")
	}
	return rapid.SampledFrom(some).Draw(t, "job")
}

func (m *uniqueModel) end(t *rapid.T) {
	j := m.one(t, false)
	m.env.end(j.id, rapid.SampledFrom([]statemachine.Event{statemachine.Complete, statemachine.Fail}).Draw(t, "how"))
	j.over = true
}

func (m *uniqueModel) revive(t *rapid.T) {
	j := m.one(t, true)
	m.Check(m.store.Apply(m.Context(), j.id, statemachine.Force))
	j.over = false
}

func (m *uniqueModel) remove(t *rapid.T) {
	j := m.one(t, rapid.Bool().Draw(t, "over"))
	m.removed(j.id)
	for i := range m.all {
		if m.all[i] == j {
			m.all = append(m.all[:i:i], m.all[i+1:]...)
			break
		}
	}
	if m.last[j.key] == j {
		delete(m.last, j.key)
	}
}

func (m *uniqueModel) wait(t *rapid.T) {
	d := rapid.SampledFrom([]time.Duration{time.Second, 59 * time.Second, time.Minute, 59 * time.Minute}).Draw(t, "time")
	m.pass(d)
	m.now += d
}

// Unique keys do what their model says, whatever ends trees, revives and removes them.
func TestUniqueKeysModel(t *testing.T) {
	t.Parallel()
	e, pass := clocked(t)
	n := 0
	rapid.Check(e, func(t *rapid.T) {
		n++
		m := &uniqueModel{env: e, pass: pass, keys: []string{fmt.Sprint("a", n), fmt.Sprint("b", n)}, last: map[string]*uniqueJob{}}
		t.Repeat(map[string]func(*rapid.T){
			"start": m.start, "start more": m.start, "end": m.end, "revive": m.revive, "remove": m.remove, "wait": m.wait,
		})
		for _, j := range m.all {
			m.removed(j.id)
		}
	})
}
