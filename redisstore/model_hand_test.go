package redisstore_test

import (
	"time"

	"pgregory.net/rapid"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
)

// retry retries a job by hand, now or later, also one that runs.
func (c *machine) retry() {
	id := pick(c, c.ids(), "job")
	r := store.Retry{Running: rapid.Bool().Draw(c.T, "running"), Later: rapid.Bool().Draw(c.T, "later")}
	r.Delay = pick(c, []time.Duration{0, shortTime, longTime}, "delay")
	c.agree("retry", c.e.store.Retry(c.e.Context(), id, r), c.model.retry(id, r))
}

// fail fails a job by hand.
func (c *machine) fail() {
	id := pick(c, c.ids(), "job")
	f := store.ByHand{Reason: "enough", By: "bob"}
	c.agree("fail", c.e.store.Fail(c.e.Context(), id, f), c.model.fail(id, f))
}

func (m *model) retry(id job.ID, r store.Retry) error {
	j, event := m.jobs[id], statemachine.Retry
	later := r.Later && r.Delay > 0
	switch {
	case later:
		event = statemachine.RetryLater
	case j.status == statemachine.Running:
		event = statemachine.Recover
	}
	to, err := statemachine.Next(j.status, event)
	if j.node.Graph || err != nil || j.status == statemachine.Running && !r.Running {
		return job.ErrStatus
	}
	j.token, j.tries, j.reason, j.ending = "", 0, "", false
	j.soon = r.Delay < longTime
	j.log = append(j.log, `{"retried":"`+r.String()+`"}`)
	m.become(j, to)
	return nil
}

func (m *model) fail(id job.ID, f store.ByHand) error {
	j := m.jobs[id]
	to, err := statemachine.Next(j.status, statemachine.GiveUp)
	if j.node.Graph || err != nil {
		return job.ErrStatus
	}
	j.token, j.reason = "", f.String()
	j.failures++
	m.become(j, to)
	m.tell(j)
	return nil
}
