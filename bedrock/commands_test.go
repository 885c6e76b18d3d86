package bedrock_test

import (
	"strings"
	"testing"
)

const (
	noJob    = "404 No job found"
	noNumber = "404 No job with this jobID"
	badEnd   = "405 Can only retry/finish RUNNING and RUNQUEUED jobs"
)

// TestB24: a new job has the first number, no data and the usual priority.
func TestB24(t *testing.T) {
	t.Parallel()
	c := start(t).dial()
	c.send("CreateJob", "name: foo")
	if status, body := c.read(); status != "200 OK" || body != `{"jobID":1}` || len(body) != 11 {
		t.Errorf("%s %s", status, body)
	}
	got := c.state(1, "QUEUED")
	if len(got["data"].(map[string]any)) != 0 || got["priority"] != 500.0 || got["name"] != "foo" {
		t.Errorf("%v", got)
	}
	c.want(`200 OK {"jobID":2}`, "CreateJob", "name: foo")
}

// TestB25: a name is needed, of at most 255 bytes.
func TestB25(t *testing.T) {
	t.Parallel()
	c := start(t).dial()
	c.want("402 Missing name", "CreateJob")
	c.want("402 Malformed name", "CreateJob", "name: "+strings.Repeat("x", 256))
	long := strings.Repeat("ä/ :", 51)
	c.want(`200 OK {"jobID":1}`, "CreateJob", "name: "+long)
	c.want(`200 OK {"data":{},"jobID":1,"name":"`+long+`"}`, "GetJob", "name: "+long)
}

// TestB26: data is a JSON object.
func TestB26(t *testing.T) {
	t.Parallel()
	c := start(t).dial()
	for _, data := range []string{"blabla", "1", "[]", "null", `{"a":1} x`} {
		c.want("402 Data is not a valid JSON Object", "CreateJob", "name: foo", "data: "+data)
	}
	c.want(`200 OK {"jobID":1}`, "CreateJob", "name: foo", `data: { "a" : "<b>" }`)
	c.want(`200 OK {"data":{"a":"<b>"},"jobID":1,"name":"foo"}`, "GetJob", "name: foo")
}

// TestB27: there is nothing to take.
func TestB27(t *testing.T) {
	t.Parallel()
	start(t).dial().want(noJob, "GetJob", "name: foo")
}

// TestB28: a job is given to one client alone.
func TestB28(t *testing.T) {
	t.Parallel()
	c := start(t).dial()
	c.ask("CreateJob", "name: foo", `data: {"value":1}`)
	c.send("GetJob", "name: foo")
	if _, body := c.read(); body != `{"data":{"value":1},"jobID":1,"name":"foo"}` || len(body) != 43 {
		t.Errorf("%s", body)
	}
	c.state(1, "RUNNING")
	c.want(noJob, "GetJob", "name: foo")
}

// TestB29: a client changes the data of its job.
func TestB29(t *testing.T) {
	t.Parallel()
	c := start(t).dial()
	c.ask("CreateJob", "name: foo", `data: {"value":1}`)
	c.ask("GetJob", "name: foo")
	c.want("200 OK", "UpdateJob", "jobID: 1", `data: {"value":2}`)
	c.send("QueryJob", "jobID: 1")
	if _, body := c.read(); body != `{"data":{"value":2},"jobID":1,"name":"foo","state":"RUNNING"}` || len(body) != 61 {
		t.Errorf("%s", body)
	}
}

// TestB30: a job that is finished is gone.
func TestB30(t *testing.T) {
	t.Parallel()
	c := start(t).dial()
	c.ask("CreateJob", "name: foo")
	c.ask("GetJob", "name: foo")
	c.want("200 OK", "FinishJob", "jobID: 1")
	for _, command := range []string{"QueryJob", "FinishJob", "DeleteJob", "RetryJob"} {
		c.want(noNumber, command, "jobID: 1")
	}
}

// TestB31: a job that repeats has its number still, and the data that it was finished with.
func TestB31(t *testing.T) {
	t.Parallel()
	s, clock := startAt(t, "2026-03-10 13:00:00")
	c := s.dial()
	c.ask("CreateJob", "name: foo", `data: {"value":1}`, "repeat: finished, +1 minute")
	c.ask("GetJob", "name: foo")
	c.want("200 OK", "FinishJob", "jobID: 1", `data: {"value":3}`)
	c.want(noJob, "GetJob", "name: foo")
	if got := c.state(1, "QUEUED"); got["nextRun"] != "2026-03-10 13:01:00" || got["repeat"] != "finished, +1 minute" {
		t.Errorf("%v", got)
	}
	clock.Set(clock.Now().Add(59 * 1e9))
	c.want(noJob, "GetJob", "name: foo")
	clock.Set(clock.Now().Add(1e9))
	c.eventually(`200 OK {"data":{"value":3},"jobID":1,"name":"foo"}`, "GetJob", "name: foo")
}

// TestB32: what no client has cannot be ended.
func TestB32(t *testing.T) {
	t.Parallel()
	c := start(t).dial()
	c.ask("CreateJob", "name: foo")
	c.want(badEnd, "FinishJob", "jobID: 1")
	c.want(badEnd, "RetryJob", "jobID: 1")
	c.want("405 Can only fail RUNNING or RUNQUEUED jobs", "FailJob", "jobID: 1")
}

// TestB33: which job is meant must be told.
func TestB33(t *testing.T) {
	t.Parallel()
	c := start(t).dial()
	for _, command := range []string{"QueryJob", "FinishJob", "FailJob", "RetryJob", "DeleteJob", "CancelJob"} {
		c.want(noNumber, command, "jobID: 999")
		c.want("402 Malformed jobID", command, "jobID: abc")
		c.want("402 Missing jobID", command)
	}
	c.want(noNumber, "UpdateJob", "jobID: 999", "data: {}")
	c.want("402 Malformed jobID", "UpdateJob", "jobID: abc", "data: {}")
	c.want("402 Missing jobID", "UpdateJob", "data: {}")
	c.ask("CreateJob", "name: foo")
	c.want("402 Missing data", "UpdateJob", "jobID: 1")
}

// TestB34: a job that somebody has, or that waits for its children, is not deleted.
func TestB34(t *testing.T) {
	t.Parallel()
	c := start(t).dial()
	c.ask("CreateJob", "name: foo")
	c.ask("GetJob", "name: foo")
	c.want("405 Can't delete a RUNNING job", "DeleteJob", "jobID: 1")
	c.ask("CreateJob", "name: child", "parentJobID: 1")
	c.want("405 Can't delete a PAUSED job", "DeleteJob", "jobID: 2")
	c.want("200 OK", "FinishJob", "jobID: 1")
	c.want("405 Can't delete a PAUSED job", "DeleteJob", "jobID: 1")
	c.ask("CreateJob", "name: foo")
	c.want("200 OK", "DeleteJob", "jobID: 3")
	c.want(noNumber, "QueryJob", "jobID: 3")
	c.want(noJob, "GetJob", "name: foo")
	c.ask("CreateJob", "name: foo", "firstRun: 2099-01-01")
	c.want("200 OK", "DeleteJob", "jobID: 4")
	c.want(noNumber, "DeleteJob", "jobID: 4")
}

// TestB46: priorities are those that there are.
func TestB46(t *testing.T) {
	t.Parallel()
	c := start(t).dial()
	c.want("402 Invalid priority value", "CreateJob", "name: foo", "jobPriority: 1")
	c.want("402 Invalid priority value", "GetJob", "name: foo", "jobPriority: 1")
	c.ask("CreateJob", "name: foo", "jobPriority: 850")
	if got := c.state(1, "QUEUED"); got["priority"] != 850.0 {
		t.Errorf("%v", got)
	}
	c.want("402 Invalid priority value", "UpdateJob", "jobID: 1", "data: {}", "jobPriority: 1")
	c.want(noJob, "GetJob", "name: foo", "jobPriority: 500")
	c.ask("GetJob", "name: foo", "jobPriority: 850")
	c.want("402 Invalid priority value", "RetryJob", "jobID: 1", "jobPriority: 1")
	c.ask("RetryJob", "jobID: 1", "jobPriority: 0")
	if got := c.state(1, "QUEUED"); got["priority"] != 0.0 {
		t.Errorf("%v", got)
	}
}

// TestB51: case does not matter, HTTP is understood, and a command that is not known ends nothing.
func TestB51(t *testing.T) {
	t.Parallel()
	c := start(t).dial()
	c.want(`200 OK {"jobID":1}`, "createjob", "NAME: foo")
	c.want(`200 OK {"data":{},"jobID":1,"name":"foo"}`, "GETJOB", "Name: foo")
	c.send("GetJob / HTTP/1.1", "name: foo")
	if status, _ := c.read(); status != "HTTP/1.1 404 No job found" {
		t.Errorf("%s", status)
	}
	if got := c.do("FinnishJob", "jobID: 1"); !strings.HasPrefix(got, "400 ") || !strings.Contains(got, "FinishJob") {
		t.Errorf("%s", got)
	}
	c.want("200 OK", "FinishJob", "jobID: 1")
	c.send("CreateJob\r\nname: a\r\n\r\nGetJob\r\nname: a") // two at once
	if status, body := c.read(); status+body != `200 OK{"jobID":2}` {
		t.Errorf("%s %s", status, body)
	}
}
