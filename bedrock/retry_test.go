package bedrock_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/job"
)

// TestB35: a job that is put back is ready at once, or after a delay.
func TestB35(t *testing.T) {
	t.Parallel()
	s, clock := startAt(t, "2026-03-10 13:00:00")
	c := s.dial()
	c.ask("CreateJob", "name: foo")
	c.ask("GetJob", "name: foo")
	c.want("402 Must specify a non-negative delay when retrying", "RetryJob", "jobID: 1", "delay: -5")
	c.want("200 OK", "RetryJob", "jobID: 1", "delay: 5")
	if got := c.state(1, "QUEUED"); got["nextRun"] != "2026-03-10 13:00:05" {
		t.Errorf("%v", got)
	}
	c.want(noJob, "GetJob", "name: foo")
	clock.Set(clock.Now().Add(5 * time.Second))
	c.eventually(`200 OK {"data":{},"jobID":1,"name":"foo"}`, "GetJob", "name: foo")
	clock.Set(clock.Now().Add(5 * time.Second))
	c.want("200 OK", "RetryJob", "jobID: 1", `data: {"a":1}`)
	if got := c.state(1, "QUEUED"); got["nextRun"] != "2026-03-10 13:00:10" {
		t.Errorf("%v", got)
	}
	c.want(`200 OK {"data":{"a":1},"jobID":1,"name":"foo"}`, "GetJob", "name: foo")
}

// TestB36: a time counts more than a delay.
func TestB36(t *testing.T) {
	t.Parallel()
	s, _ := startAt(t, "2026-03-10 13:00:00")
	c := s.dial()
	c.ask("CreateJob", "name: foo")
	c.ask("GetJob", "name: foo")
	c.want("402 Malformed nextRun", "RetryJob", "jobID: 1", "nextRun: soon")
	c.ask("RetryJob", "jobID: 1", "nextRun: 2026-03-11 08:30:00", "delay: 900")
	if got := c.state(1, "QUEUED"); got["nextRun"] != "2026-03-11 08:30:00" {
		t.Errorf("%v", got)
	}
}

// TestB37 and B38: a job that repeats is put back to when it repeats, unless that is to be ignored.
func TestB37(t *testing.T) {
	t.Parallel()
	s, _ := startAt(t, "2026-03-10 13:00:00")
	c := s.dial()
	c.ask("CreateJob", "name: foo", "repeat: STARTED, +1 HOUR")
	c.ask("GetJob", "name: foo")
	c.ask("RetryJob", "jobID: 1", "nextRun: 2026-03-11 08:30:00", "delay: 900")
	if got := c.state(1, "QUEUED"); got["nextRun"] != "2026-03-10 14:00:00" {
		t.Errorf("%v", got)
	}
}

// TestB38: see TestB37; it repeats afterwards.
func TestB38(t *testing.T) {
	t.Parallel()
	s, clock := startAt(t, "2026-03-10 13:00:00")
	c := s.dial()
	c.ask("CreateJob", "name: foo", "repeat: STARTED, +1 HOUR")
	c.ask("GetJob", "name: foo")
	c.ask("RetryJob", "jobID: 1", "nextRun: 2026-03-10 13:10:00", "ignoreRepeat: true")
	if got := c.state(1, "QUEUED"); got["nextRun"] != "2026-03-10 13:10:00" {
		t.Errorf("%v", got)
	}
	clock.Set(clock.Now().Add(10 * time.Minute))
	c.eventually(`200 OK {"data":{},"jobID":1,"name":"foo"}`, "GetJob", "name: foo")
	c.ask("FinishJob", "jobID: 1")
	if got := c.state(1, "QUEUED"); got["nextRun"] != "2026-03-10 14:10:00" {
		t.Errorf("%v", got)
	}
}

// TestB40: a job that is put back may get another name.
func TestB40(t *testing.T) {
	t.Parallel()
	c := start(t).dial()
	c.ask("CreateJob", "name: old@name", `data: {"a":1}`)
	c.ask("GetJob", "name: old@name")
	c.ask("RetryJob", "jobID: 1", "name: new Name", `data: {"b":2}`)
	c.want(noJob, "GetJob", "name: old@name")
	c.want(`200 OK {"data":{"b":2},"jobID":1,"name":"new Name"}`, "GetJob", "name: new Name")
	c.want("200 OK", "FinishJob", "jobID: 1")
}

// TestB47: a date is its midnight, in UTC.
func TestB47(t *testing.T) {
	t.Parallel()
	s, clock := startAt(t, "2026-03-11 23:59:59")
	c := s.dial()
	c.want("402 Malformed firstRun", "CreateJob", "name: foo", "firstRun: 12.3.2026")
	c.ask("CreateJob", "name: foo", "firstRun: 2026-03-12")
	if got := c.state(1, "QUEUED"); got["nextRun"] != "2026-03-12 00:00:00" {
		t.Errorf("%v", got)
	}
	c.want(noJob, "GetJob", "name: foo")
	clock.Set(clock.Now().Add(time.Second))
	c.eventually(`200 OK {"data":{},"jobID":1,"name":"foo"}`, "GetJob", "name: foo")
}

// A time of any year is shown, and repeated from, as it was given; the job runs then.
func TestFarTimes(t *testing.T) {
	t.Parallel()
	s, clock := startAt(t, "2026-03-10 13:00:00")
	c := s.dial()
	next := func(n int, want string) {
		t.Helper()
		if got := c.state(n, "QUEUED"); got["nextRun"] != want {
			t.Errorf("job %d: %v, want %s", n, got, want)
		}
	}
	for n, at := range []string{"1970-01-02", "2010-01-01", "2022-03-06", "2054-11-04", "2090-01-01", "9999-12-31"} {
		c.ask("CreateJob", "name: far", "firstRun: "+at)
		next(n+1, at+" 00:00:00")
	}
	c.ask("CreateJob", "name: yearly", "firstRun: 2010-01-01", "repeat: SCHEDULED, +1 YEAR")
	c.ask("CreateJob", "name: updated", "firstRun: 2010-01-01")
	c.ask("UpdateJob", "jobID: 8", "data: {}", "repeat: SCHEDULED, +1 YEAR")
	c.ask("CreateJob", "name: old", "firstRun: 1950-01-01", "repeat: SCHEDULED, +1 YEAR")
	for n, name := range map[int]string{7: "yearly", 8: "updated"} {
		for _, want := range []string{"2011-01-01 00:00:00", "2012-01-01 00:00:00"} {
			c.ask("GetJob", "name: "+name)
			c.ask("FinishJob", jobID(n))
			next(n, want)
		}
		c.ask("GetJob", "name: "+name)
		c.ask("RetryJob", jobID(n), "nextRun: 2100-06-01 12:00:00", "ignoreRepeat: true")
		next(n, "2100-06-01 12:00:00")
	}
	c.ask("GetJob", "name: old")
	c.ask("FinishJob", "jobID: 9")
	c.state(9, "QUEUED")
	for range 3 {
		c.ask("GetJob", "name: far")
	}
	c.want(noJob, "GetJob", "name: far")
	clock.Set(time.Date(2089, 12, 31, 23, 59, 59, 0, time.UTC))
	c.eventually(`200 OK {"data":{},"jobID":4,"name":"far"}`, "GetJob", "name: far")
	c.want(noJob, "GetJob", "name: far")
	clock.Set(clock.Now().Add(time.Second))
	c.eventually(`200 OK {"data":{},"jobID":5,"name":"far"}`, "GetJob", "name: far")
}

// TestB20: what is no repetition is refused.
func TestB20(t *testing.T) {
	t.Parallel()
	c := start(t).dial()
	c.ask("CreateJob", "name: foo")
	for _, repeat := range []string{"SCHEDULED", "+1 HOUR", "blabla", "LATER, +1 HOUR", "FINISHED, WEEKDAY 7", "FINISHED, +1 FORTNIGHT", "FINISHED, 1 HOUR", "cron:* * * * *"} {
		c.want("402 Malformed repeat", "CreateJob", "name: foo", "repeat: "+repeat)
		c.want("402 Malformed repeat", "UpdateJob", "jobID: 1", "data: {}", "repeat: "+repeat)
	}
	for _, repeat := range []string{"hourly", "Daily", "WEEKLY", "FINISHED, + 1 HOUR", "finished, +1 minute"} {
		c.ask("CreateJob", "name: foo", "repeat: "+repeat)
	}
}

// TestB21: what a SCHEDULED job has missed it catches up, one run after the other.
func TestB21(t *testing.T) {
	t.Parallel()
	s, clock := startAt(t, "2026-03-10 13:00:00")
	c := s.dial()
	c.ask("CreateJob", "name: foo", "repeat: SCHEDULED, +1 HOUR", "firstRun: 2026-03-10 08:00:00")
	clock.Set(clock.Now().Add(45 * time.Minute))
	for run := range 6 {
		got := c.ask("GetJob", "name: foo")
		if got["jobID"] != 1.0 {
			t.Fatalf("run %d: %v", run, got)
		}
		c.ask("FinishJob", "jobID: 1")
	}
	c.want(noJob, "GetJob", "name: foo")
	if got := c.state(1, "QUEUED"); got["nextRun"] != "2026-03-10 14:00:00" {
		t.Errorf("%v", got)
	}
}

// A job gets another repetition, or one at all, while it runs or waits.
func TestUpdateRepeat(t *testing.T) {
	t.Parallel()
	s, _ := startAt(t, "2026-03-10 13:00:00")
	c := s.dial()
	c.ask("CreateJob", "name: foo")
	c.ask("GetJob", "name: foo")
	c.ask("UpdateJob", "jobID: 1", "data: {}", "repeat: SCHEDULED, +1 DAY")
	c.ask("FinishJob", "jobID: 1")
	if got := c.state(1, "QUEUED"); got["nextRun"] != "2026-03-11 13:00:00" || got["repeat"] != "SCHEDULED, +1 DAY" {
		t.Errorf("%v", got)
	}
}

// TestB67: a job that is not finished in time is given out again.
func TestB67(t *testing.T) {
	t.Parallel()
	s, clock := startAt(t, "2026-03-10 13:00:00")
	c := s.dial()
	c.want("402 Malformed retryAfter", "CreateJob", "name: foo", "retryAfter: 10")
	c.ask("CreateJob", "name: foo", "retryAfter: +5 SECONDS")
	c.ask("GetJob", "name: foo")
	if got := c.state(1, "RUNQUEUED"); got["nextRun"] != "2026-03-10 13:00:05" || got["lastRun"] != "2026-03-10 13:00:00" {
		t.Errorf("%v", got)
	}
	c.want(noJob, "GetJob", "name: foo")
	clock.Set(clock.Now().Add(5 * time.Second))
	c.eventually(`200 OK {"data":{},"jobID":1,"name":"foo","retryAfterCount":1}`, "GetJob", "name: foo")
	c.state(1, "RUNQUEUED")
	clock.Set(clock.Now().Add(6 * time.Second))
	c.eventually("200 OK", "FinishJob", "jobID: 1") // late, but nobody else has got it
	c.want(noNumber, "QueryJob", "jobID: 1")
}

// A job that nobody finishes is given out again each time when its retryAfter is over, not later, and never fails.
func TestRetryAfterForever(t *testing.T) {
	t.Parallel()
	s, clock := startAt(t, "2026-03-10 13:00:00")
	c := s.dial()
	c.ask("CreateJob", "name: foo", "retryAfter: +5 SECONDS")
	c.ask("GetJob", "name: foo")
	id, err := s.store.Resolve(t.Context(), "bedrock/1")
	enginetest.Check(t, err)
	for n := 1; n <= 12; n++ {
		c.state(1, "RUNQUEUED") // answered once the server has noted that the answer before is out
		clock.Set(clock.Now().Add(4900 * time.Millisecond))
		c.want(noJob, "GetJob", "name: foo")
		next := clock.Now().Add(100 * time.Millisecond)
		clock.Set(next)
		enginetest.Until(t, "the lease has ended", func() bool {
			info, err := s.store.Info(t.Context(), id)
			enginetest.Check(t, err)
			return info.Status == job.Queued
		})
		got := c.state(1, "RUNQUEUED")
		if got["nextRun"] != next.Format(time.DateTime) || got["lastRun"] != next.Add(-5*time.Second).Format(time.DateTime) {
			t.Errorf("before it is given again: %v", got)
		}
		c.want(fmt.Sprintf(`200 OK {"data":{},"jobID":1,"name":"foo","retryAfterCount":%d}`, n), "GetJob", "name: foo")
	}
	c.want("200 OK", "FinishJob", "jobID: 1")
}
