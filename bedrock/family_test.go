package bedrock_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/bedrock"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/worker"
)

// TestB52: of the jobs with a key one is ready at a time.
func TestB52(t *testing.T) {
	t.Parallel()
	c := start(t).dial()
	for _, key := range []string{"k", "k", "k", "other", ""} {
		c.ask("CreateJob", "name: foo", "sequentialKey: "+key)
	}
	for n, state := range []string{"QUEUED", "WAITING", "WAITING", "QUEUED", "QUEUED"} {
		c.state(n+1, state)
	}
}

// TestB53: the next one is ready when the first is over, however it ended.
func TestB53(t *testing.T) {
	t.Parallel()
	for name, end := range map[string][]string{
		"finish": {"GetJob", "FinishJob"}, "fail": {"GetJob", "FailJob"}, "delete": {"DeleteJob"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := start(t).dial()
			for range 3 {
				c.ask("CreateJob", "name: foo", "sequentialKey: k")
			}
			for _, command := range end {
				c.ask(command, about(command, "foo", 1))
			}
			if name == "fail" {
				c.state(1, "FAILED")
				c.want("405 Can only fail RUNNING or RUNQUEUED jobs", "FailJob", "jobID: 1")
			} else {
				c.want(noNumber, "QueryJob", "jobID: 1")
			}
			c.state(2, "QUEUED")
			if got := c.state(3, "WAITING"); got["sequentialKey"] != "k" {
				t.Errorf("%v", got)
			}
		})
	}
}

// A head that is terminated lets the next one go at once, without an engine or a client that takes jobs.
func TestTerminatedHead(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.dial()
	for range 4 {
		c.ask("CreateJob", "name: foo", "sequentialKey: k")
	}
	terminate := func(n int) {
		t.Helper()
		id, err := s.store.Resolve(t.Context(), fmt.Sprintf("bedrock/%d", n))
		enginetest.Check(t, err)
		enginetest.Check(t, s.store.Terminate(t.Context(), id))
	}
	terminate(1)
	c.want(noNumber, "QueryJob", "jobID: 1")
	c.state(2, "QUEUED")
	terminate(3)
	c.state(4, "WAITING")
	if got := c.ask("GetJob", "name: foo"); got["jobID"] != 2.0 {
		t.Errorf("%v", got)
	}
	terminate(2) // which a client has
	c.want(noNumber, "FinishJob", "jobID: 2")
	c.state(4, "QUEUED")
}

// TestB54: a job that waits for its key is given to nobody, whatever its priority.
func TestB54(t *testing.T) {
	t.Parallel()
	c := start(t).dial()
	c.ask("CreateJob", "name: foo", "sequentialKey: k", "jobPriority: 0")
	c.ask("CreateJob", "name: foo", "sequentialKey: k", "jobPriority: 1000", "firstRun: 2020-01-01")
	if got := c.ask("GetJob", "name: foo"); got["jobID"] != 1.0 {
		t.Errorf("%v", got)
	}
	c.want(noJob, "GetJob", "name: foo")
	c.want(noJob, "GetJob", "name: foo", "jobPriority: 1000")
	c.state(2, "WAITING")
	c.ask("UpdateJob", "jobID: 2", "data: {}", "jobPriority: 850")
	c.state(2, "WAITING")
	c.ask("DeleteJob", "jobID: 2")
	c.ask("FinishJob", "jobID: 1")
	c.want(noJob, "GetJob", "name: foo")
}

// TestB58: neither a job that repeats nor a child has a key.
func TestB58(t *testing.T) {
	t.Parallel()
	c := start(t).dial()
	c.want("402 A job with a sequentialKey cannot repeat", "CreateJob", "name: foo", "sequentialKey: k", "repeat: HOURLY")
	c.want("402 A job with a sequentialKey cannot have a parentJobID", "CreateJob", "name: foo", "sequentialKey: k", "parentJobID: 1")
	c.want("402 A job with a parentJobID cannot repeat", "CreateJob", "name: foo", "parentJobID: 1", "repeat: HOURLY")
}

// UpdateJob refuses what CreateJob does, and changes nothing then.
func TestUpdateUnrepeatable(t *testing.T) {
	t.Parallel()
	c := start(t).dial()
	c.ask("CreateJob", "name: foo", "sequentialKey: k")
	c.ask("CreateJob", "name: parent")
	c.ask("GetJob", "name: parent")
	c.ask("CreateJob", "name: child", "parentJobID: 2")
	c.want("402 A job with a sequentialKey cannot repeat", "UpdateJob", "jobID: 1", `data: {"a":1}`, "repeat: HOURLY", "jobPriority: 1000")
	c.want("402 A job with a parentJobID cannot repeat", "UpdateJob", "jobID: 3", `data: {"a":1}`, "repeat: HOURLY", "jobPriority: 1000")
	for n, state := range map[int]string{1: "QUEUED", 3: "PAUSED"} {
		got := c.state(n, state)
		if got["repeat"] != nil || fmt.Sprint(got["data"], got["priority"]) != "map[] 500" {
			t.Errorf("%v", got)
		}
		c.want("200 OK", "UpdateJob", jobID(n), "data: {}", "repeat:")
	}
}

// TestB62: which jobs can have children.
func TestB62(t *testing.T) {
	t.Parallel()
	c := start(t).dial()
	const refused = "405 Can only create child job when parent is RUNNING, RUNQUEUED or PAUSED"
	c.want("404 parentJobID does not exist", "CreateJob", "name: child", "parentJobID: 7")
	c.want("402 Malformed parentJobID", "CreateJob", "name: child", "parentJobID: x")
	c.ask("CreateJob", "name: foo")
	c.want(refused, "CreateJob", "name: child", "parentJobID: 1")
	c.ask("GetJob", "name: foo")
	c.want(`200 OK {"jobID":2}`, "CreateJob", "name: child", "parentJobID: 1")
	c.ask("FinishJob", "jobID: 1")
	c.ask("GetJob", "name: child")
	c.want("405 Cannot create grandchildren", "CreateJob", "name: grandchild", "parentJobID: 2")
}

// TestB63: children begin when the run of their parent ends; those that come later at once.
func TestB63(t *testing.T) {
	t.Parallel()
	c := start(t).dial()
	c.ask("CreateJob", "name: foo")
	c.ask("GetJob", "name: foo")
	c.ask("CreateJob", "name: child", "parentJobID: 1", `data: {"a":1}`)
	c.ask("CreateJobs", `jobs: [{"name":"child","parentJobID":1}]`)
	if got := c.state(2, "PAUSED"); got["parentJobID"] != 1.0 {
		t.Errorf("%v", got)
	}
	c.want(noJob, "GetJob", "name: *")
	c.want("200 OK", "FinishJob", "jobID: 1")
	c.state(1, "PAUSED")
	c.state(2, "QUEUED")
	c.state(3, "QUEUED")
	c.ask("CreateJob", "name: sibling", "parentJobID: 1")
	c.state(4, "QUEUED")
	c.want(`200 OK {"data":{"a":1},"jobID":2,"name":"child","parentJobID":1}`, "GetJob", "name: *")
}

// TestB64: the parent goes on when all are over, is told of them, and all are gone when it is finished.
func TestB64(t *testing.T) {
	t.Parallel()
	c := start(t).dial()
	c.ask("CreateJob", "name: foo")
	c.ask("GetJob", "name: foo")
	for n := range 4 {
		c.ask("CreateJob", "name: child", "parentJobID: 1", fmt.Sprintf(`data: {"n":%d}`, n))
	}
	c.ask("FinishJob", "jobID: 1")
	c.want("402 Invalid jobID. Can only cancel a child job", "CancelJob", "jobID: 1")
	c.want("200 OK", "CancelJob", "jobID: 5")
	c.state(5, "CANCELLED")
	for n := range 3 {
		c.state(1, "PAUSED")
		c.want(noJob, "GetJob", "name: foo")
		got := c.ask("GetJob", "name: child")
		if got["jobID"] != float64(n+2) {
			t.Errorf("%v", got)
		}
		c.want("200 OK", "CancelJob", jobID(n+2)) // that does nothing
		if n == 2 {
			c.ask("RetryJob", jobID(n+2))
			c.ask("GetJob", "name: child")
		}
		c.ask("FinishJob", jobID(n+2), `data: {"done":true}`)
		c.state(n+2, "FINISHED")
	}
	c.state(1, "QUEUED")
	c.want(`200 OK {"cancelledChildJobs":[{"data":{"n":3},"jobID":5}],"data":{},"finishedChildJobs":[{"data":{"done":true},"jobID":2},{"data":{"done":true},"jobID":3},{"data":{"done":true},"jobID":4}],"jobID":1,"name":"foo"}`, "GetJob", "name: foo")
	c.state(1, "RUNNING")
	c.ask("FinishJob", "jobID: 1")
	for n := range 5 {
		c.want(noNumber, "QueryJob", jobID(n+1))
	}
}

// A parent goes on when its last child fails, or is deleted.
func TestLastChild(t *testing.T) {
	t.Parallel()
	for name, end := range map[string][]string{"fail": {"GetJob", "FailJob"}, "delete": {"DeleteJob"}, "cancel": {"CancelJob"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := start(t).dial()
			c.ask("CreateJob", "name: foo")
			c.ask("GetJob", "name: foo")
			c.ask("CreateJob", "name: child", "parentJobID: 1")
			c.ask("FinishJob", "jobID: 1")
			for _, command := range end {
				c.ask(command, about(command, "child", 2))
			}
			c.state(1, "QUEUED")
			if got := c.ask("GetJob", "name: foo"); got["jobID"] != 1.0 {
				t.Errorf("%v", got)
			}
			c.ask("FinishJob", "jobID: 1")
			c.want(noNumber, "QueryJob", "jobID: 1")
		})
	}
}

// TestB69: of a name that is unique there is one job, which gets the data of the others.
func TestB69(t *testing.T) {
	t.Parallel()
	c := start(t).dial()
	const data = `data: {"a":1,"n":{"A":1}}`
	c.want(`200 OK {"jobID":1}`, "CreateJob", "name: foo", "unique: true", data)
	c.want(`200 OK {"jobID":1}`, "CreateJob", "name: foo", "unique: true", data)
	c.want(`200 OK {"jobID":1}`, "CreateJob", "name: foo", "unique: true", `data: {"b":2,"a":null,"n":{"B":2}}`)
	check := func(want string) {
		t.Helper()
		if got := fmt.Sprint(c.state(1, "QUEUED")["data"]); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	check("map[b:2 n:map[A:1 B:2]]")
	c.want(`200 OK {"jobID":1}`, "CreateJob", "name: foo", "unique: true", "overwrite: false", `data: {"c":3}`)
	check("map[b:2 n:map[A:1 B:2]]")
	if got := c.ask("CreateJob", "name: foo"); got["jobID"] == 1.0 {
		t.Errorf("%v", got)
	}
	c.ask("GetJob", "name: foo")
	c.want("200 OK", "FinishJob", "jobID: 1")
	if got := c.ask("CreateJob", "name: foo", "unique: true"); got["jobID"] == 1.0 {
		t.Errorf("%v", got)
	}
}

// A unique job that has failed keeps its name, as in Bedrock: it is answered and stays as it is, until somebody deletes it.
func TestUniqueFailed(t *testing.T) {
	t.Parallel()
	c := start(t).dial()
	c.want(`200 OK {"jobID":1}`, "CreateJob", "name: foo", "unique: true")
	c.ask("GetJob", "name: foo")
	c.want("200 OK", "FailJob", "jobID: 1")
	c.want(`200 OK {"jobID":1}`, "CreateJob", "name: foo", "unique: true", `data: {"a":1}`)
	if got := fmt.Sprint(c.state(1, "FAILED")["data"]); got != "map[a:1]" {
		t.Errorf("its data is %s", got)
	}
	c.want("200 OK", "DeleteJob", "jobID: 1")
	if got := c.ask("CreateJob", "name: foo", "unique: true"); got["jobID"] == 1.0 {
		t.Errorf("%v", got)
	}
}

// A job that is the only one of its name may get another name: the old one is free then, and it is the only one of the new one.
func TestUniqueRenamed(t *testing.T) {
	t.Parallel()
	c := start(t).dial()
	c.want(`200 OK {"jobID":1}`, "CreateJob", "name: old", "unique: true", `data: {"a":1}`)
	c.ask("GetJob", "name: old")
	c.want("200 OK", "RetryJob", "jobID: 1", "name: new")
	other := c.ask("CreateJob", "name: old", "unique: true", `data: {"b":1}`)
	if other["jobID"] == 1.0 {
		t.Errorf("the job has another name: %v", other)
	}
	c.want(`200 OK {"jobID":1}`, "CreateJob", "name: new", "unique: true", `data: {"c":1}`)
	if got := fmt.Sprint(c.state(1, "QUEUED")["data"]); got != "map[a:1 c:1]" {
		t.Errorf("%s: data that is another job's is in it, or its own is missing", got)
	}
	if got := c.ask("GetJob", "name: old"); got["jobID"] != other["jobID"] {
		t.Errorf("%v, want %v", got, other)
	}
	c.want("200 OK", "RetryJob", fmt.Sprintf("jobID: %.0f", other["jobID"]), "name: new") // that one is unique already
	c.want(`200 OK {"jobID":1}`, "CreateJob", "name: new", "unique: true")
	if got := c.ask("CreateJob", "name: old", "unique: true"); got["jobID"] == 1.0 || got["jobID"] == other["jobID"] {
		t.Errorf("%v", got)
	}
}

// about is the parameter by which a command says which job it means.
func about(command, name string, number int) string {
	if command == "GetJob" {
		return "name: " + name
	}
	return fmt.Sprintf("jobID: %d", number)
}

// trees counts how often all jobs of a tree are read.
type trees struct {
	bedrock.Store
	read int
}

func (s *trees) Tree(ctx context.Context, id job.ID) ([]*job.Info, error) {
	s.read++
	return s.Store.Tree(ctx, id)
}

// on returns a service of the same jobs, and what it does with a command: the answer is to begin with want, and its body is returned.
func (s *surface) on() (store *trees, do func(want, method string, params ...string) []byte) {
	s.Helper()
	return s.onStore(func(store bedrock.Store) bedrock.Store { return store })
}

// onStore does so with the store that wrap returns.
func (s *surface) onStore(wrap func(bedrock.Store) bedrock.Store) (store *trees, do func(want, method string, params ...string) []byte) {
	s.Helper()
	leases, err := worker.NewLeases(worker.LeaseConfig{Store: s.store})
	if err != nil {
		s.Fatal(err)
	}
	store = &trees{Store: s.store}
	service := bedrock.New(wrap(store), leases)
	return store, func(want, method string, params ...string) []byte {
		s.Helper()
		command, err := bedrock.CommandOf(method)
		if err != nil {
			s.Fatal(err)
		}
		q := &bedrock.Request{Method: method, Params: map[string]string{}}
		for i := 0; i < len(params); i += 2 {
			q.Params[strings.ToLower(params[i])] = params[i+1]
		}
		r := service.Do(s.Context(), command, q)
		if got := fmt.Sprint(r.Status, " ", r.Text); !strings.HasPrefix(got, want) {
			s.Errorf("%s %v answers %s, want %s", method, params, got, want)
		}
		return r.Body
	}
}

// The end of a child costs as much with many siblings as with few: most ends look at one of them.
func TestManyChildren(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.dial()
	const n = 60
	c.ask("CreateJob", "name: foo")
	c.ask("GetJob", "name: foo")
	for range n {
		c.ask("CreateJob", "name: child", "parentJobID: 1")
	}
	c.ask("FinishJob", "jobID: 1")
	store, do := s.on()
	for i := range n {
		if i%3 == 0 { // from the end, as the others are given from the start
			do("200", "CancelJob", "jobID", strconv.Itoa(n+1-i/3))
			do("404", "GetJob", "name", "nobody") // which looks whether the parent goes on
			continue
		}
		var given struct{ JobID json.Number }
		if err := json.Unmarshal(do("200", "GetJob", "name", "child"), &given); err != nil { // those of one millisecond are in no order
			t.Fatal(err)
		}
		do("200", "FinishJob", "jobID", given.JobID.String())
	}
	if store.read > 40 { // one in 10^12 runs
		t.Errorf("%d ends of children read the tree %d times, want about %d", n, store.read, 5)
	}
	if got := c.ask("GetJob", "name: foo"); len(got["finishedChildJobs"].([]any)) != 40 || len(got["cancelledChildJobs"].([]any)) != 20 {
		t.Errorf("%v", got)
	}
}

// A parent that repeats has the children of its last repetition only: those of earlier ones are gone when it was finished.
func TestRepeatForgetsChildren(t *testing.T) {
	t.Parallel()
	s, clock := startAt(t, "2026-03-10 13:00:00")
	c := s.dial()
	c.ask("CreateJob", "name: foo", "repeat: SCHEDULED, +1 HOUR", "firstRun: 2026-03-10 11:00:00") // two of which are due
	for _, n := range []int{2, 4} {
		got := c.ask("GetJob", "name: foo")
		if n > 2 && (fmt.Sprint(got["finishedChildJobs"]) != "[]" || fmt.Sprint(got["cancelledChildJobs"]) != "[]") {
			t.Errorf("the next repetition is told %v", got)
		}
		c.ask("CreateJob", "name: child", "parentJobID: 1")
		c.ask("CreateJob", "name: child", "parentJobID: 1")
		c.ask("FinishJob", "jobID: 1")
		c.state(1, "PAUSED")
		c.ask("GetJob", "name: child")
		c.ask("GetJob", "name: child")
		c.ask("FinishJob", jobID(n))
		c.ask("FailJob", jobID(n+1))
		got = c.ask("GetJob", "name: foo")
		if want := fmt.Sprintf("[map[data:map[] jobID:%d]]", n); fmt.Sprint(got["finishedChildJobs"]) != want {
			t.Errorf("%v, want %s", got, want)
		}
		c.ask("FinishJob", "jobID: 1")
		c.state(1, "QUEUED")
		c.want(noNumber, "QueryJob", jobID(n))
		c.want(noNumber, "QueryJob", jobID(n+1))
	}
	id, err := s.store.Resolve(t.Context(), "bedrock/1")
	enginetest.Check(t, err)
	tree, err := s.store.Tree(t.Context(), id)
	enginetest.Check(t, err)
	if len(tree) != 1 {
		t.Errorf("%d jobs are left of the tree, want 1", len(tree))
	}
	clock.Set(clock.Now().Add(time.Hour))
	for range 2 { // those of 13:00 and 14:00: no end of a child causes one more
		c.ask("GetJob", "name: foo")
		c.ask("FinishJob", "jobID: 1")
	}
	c.want(noJob, "GetJob", "name: foo")
}

// stubborn deletes nothing, as a process that dies before.
type stubborn struct{ bedrock.Store }

func (stubborn) Delete(context.Context, job.ID) error { return context.Canceled }

// If a process dies before it has deleted them they are gone for clients anyway, and the next repetition deletes them.
func TestRepeatForgetsChildrenLater(t *testing.T) {
	t.Parallel()
	s, _ := startAt(t, "2026-03-10 13:00:00")
	c := s.dial()
	_, do := s.onStore(func(store bedrock.Store) bedrock.Store { return stubborn{store} })
	c.ask("CreateJob", "name: foo", "repeat: SCHEDULED, +1 HOUR", "firstRun: 2026-03-10 11:00:00")
	finish := func() {
		t.Helper()
		c.ask("GetJob", "name: foo")
		c.ask("CreateJob", "name: child", "parentJobID: 1")
		c.ask("FinishJob", "jobID: 1")
		child := c.ask("GetJob", "name: child")
		c.ask("FinishJob", jobID(int(child["jobID"].(float64))))
		c.ask("GetJob", "name: foo")
	}
	left := func() int {
		id, err := s.store.Resolve(t.Context(), "bedrock/1")
		enginetest.Check(t, err)
		tree, err := s.store.Tree(t.Context(), id)
		enginetest.Check(t, err)
		return len(tree)
	}
	finish()
	do("200", "FinishJob", "jobID", "1")
	c.want(noNumber, "QueryJob", "jobID: 2")
	if n := left(); n != 2 {
		t.Errorf("%d jobs are left, want the parent and a child", n)
	}
	finish()
	c.ask("FinishJob", "jobID: 1")
	if n := left(); n != 1 {
		t.Errorf("%d jobs are left, want the parent", n)
	}
}
