package bedrock_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirworks/weir/bedrock"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/worker"
)

// TestB42: which names match a pattern.
func TestB42(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		pattern, name string
		want          bool
	}{
		{"Foo*", "FooBar", true},
		{"Foo*", "Foo", true},
		{"Foo*", "fooBar", false},
		{"Foo*", "aFoo", false},
		{"www-prod/*", "www-prod/A/b", true},
		{"a?", "a1", true},
		{"a?", "a", false},
		{"a?", "aä", true},
		{"a[0-9]", "a1", true},
		{"a[0-9]", "ab", false},
		{"a[^0-9]", "ab", true},
		{"a[^0-9]", "a1", false},
		{"a[]]", "a]", true},
		{"a[^]]", "a]", false},
		{"a[a-]", "a-", true},
		{"a[", "a[", false},
		{"*a*b", "xaxbxb", true},
		{"*a*b", "xaxbxc", false},
		{"*", "", true},
		{"", "", true},
		{"", "a", false},
		{"a**", "a", true},
		{`a\*`, "a*", false},
	} {
		if got := bedrock.Match(tt.pattern, tt.name); got != tt.want {
			t.Errorf("%q matches %q: %t", tt.pattern, tt.name, got)
		}
	}
	c := start(t).dial()
	for _, name := range []string{"fooBar", "aFoo", "FooBar", "Foo", "www-prod/A/b"} {
		c.ask("CreateJob", "name: "+name)
	}
	for _, id := range []float64{3, 4} {
		if got := c.ask("GetJob", "name: Foo*"); got["jobID"] != id {
			t.Errorf("%v", got)
		}
	}
	c.want(noJob, "GetJob", "name: Foo*")
	if got := c.ask("GetJob", "name: nobody, www-prod/*"); got["jobID"] != 5.0 {
		t.Errorf("%v", got)
	}
}

// TestB44: a higher priority goes first, then what was due earlier, then what was created first, whatever the names.
func TestB44(t *testing.T) {
	t.Parallel()
	s, clock := startAt(t, "2026-03-10 13:00:00")
	c := s.dial()
	for n, name := range []string{"low_5", "high_1", "medium_3", "high_2", "medium_4"} {
		c.ask("CreateJob", "name: "+name, fmt.Sprintf("jobPriority: %d", []int{0, 1000, 500, 1000, 500}[n]))
	}
	for _, want := range []string{"high_1", "high_2", "medium_3", "medium_4", "low_5"} {
		if got := c.ask("GetJob", "name: *"); got["name"] != want {
			t.Errorf("%v, want %s", got, want)
		}
	}
	const jobs = 40 // of many names, due in another order than they are created in
	for n := range jobs {
		at := 20 - n/2
		c.ask("CreateJob", fmt.Sprintf("name: x%d", n*7%jobs), fmt.Sprintf(`data: {"n":%d}`, n), fmt.Sprintf("firstRun: 2026-03-10 13:00:%02d", at))
	}
	c.ask("CreateJob", "name: later", "firstRun: 2026-03-10 13:00:59")
	clock.Set(clock.Now().Add(time.Minute))
	c.eventually(`200 OK {"data":{},"jobID":46,"name":"later"}`, "GetJob", "name: later") // the last: all are ready
	c.ask("CreateJob", "name: a")
	for n := range jobs {
		want := float64(jobs - 2 - n/2*2 + n%2)
		if got := c.ask("GetJob", "name: [ax]*"); got["data"].(map[string]any)["n"] != want {
			t.Errorf("%d: %v, want %v", n, got, want)
		}
	}
	c.want(`200 OK {"data":{},"jobID":47,"name":"a"}`, "GetJob", "name: *")
}

// A priority that is asked for is the only one, and of its jobs the order is the same.
func TestOnePriority(t *testing.T) {
	t.Parallel()
	c := start(t).dial()
	for n := range 8 {
		c.ask("CreateJob", fmt.Sprintf("name: x%d", 8-n), fmt.Sprintf("jobPriority: %d", 250+n%2*500))
	}
	for _, want := range []float64{1, 3, 5, 7} {
		if got := c.ask("GetJob", "name: x*", "jobPriority: 250"); got["jobID"] != want {
			t.Errorf("%v, want %v", got, want)
		}
	}
	c.want(noJob, "GetJob", "name: x*", "jobPriority: 250")
	c.ask("UpdateJob", "jobID: 8", "data: {}", "jobPriority: 1000")
	if got := c.ask("GetJob", "name: x*"); got["jobID"] != 8.0 {
		t.Errorf("%v", got)
	}
}

// TestB48: a client that waits is answered as soon as there is a job, or when its time is over.
func TestB48(t *testing.T) {
	t.Parallel()
	s := start(t)
	c, other := s.dial(), s.dial()
	c.want("402 Malformed timeout: use 0 to 300000", "GetJob", "name: foo", "connection: wait", "timeout: -1")
	began := time.Now()
	c.send("GetJob", "name: foo", "Connection: wait", "Timeout: 300000")
	time.Sleep(500 * time.Millisecond) // when the job is created is what is tested
	other.ask("CreateJob", "name: foo")
	if status, _ := c.read(); status != "200 OK" || time.Since(began) > enginetest.Patience {
		t.Errorf("%s after %s", status, time.Since(began))
	}
	began = time.Now()
	c.want(noJob, "GetJob", "name: foo", "connection: wait", "timeout: 2000")
	if took := time.Since(began); took < 1900*time.Millisecond || took > enginetest.Patience {
		t.Errorf("after %s", took)
	}
}

// TestB50: each of many jobs is given to one of more clients.
func TestB50(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.dial()
	for range 50 {
		c.ask("CreateJob", "name: foo")
	}
	clients := make([]*client, 100)
	for i := range clients {
		clients[i] = s.dial()
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	seen, none := map[float64]int{}, 0
	for _, c := range clients {
		all.Go(func() {
			if _, err := c.conn.Write([]byte("GetJob\nname: foo\n\n")); err != nil {
				t.Error(err)
			}
			status, body, err := c.tryRead()
			mu.Lock()
			defer mu.Unlock()
			var job struct {
				JobID float64 `json:"jobID"`
			}
			switch {
			case err == nil && status == noJob:
				none++
			case err == nil && status == "200 OK" && json.Unmarshal([]byte(body), &job) == nil:
				seen[job.JobID]++
			default:
				t.Errorf("%s %s %v", status, body, err)
			}
		})
	}
	all.Wait()
	if len(seen) != 50 || none != 50 {
		t.Errorf("%d jobs were given, %d clients got none", len(seen), none)
	}
}

// Several jobs are created and taken at once, all or none of those that are wrong.
func TestSeveral(t *testing.T) {
	t.Parallel()
	c := start(t).dial()
	c.want("402 Missing jobs", "CreateJobs")
	c.want("401 Invalid JSON", "CreateJobs", "jobs: {}")
	c.want("401 Invalid JSON", "CreateJobs", `jobs: [1]`)
	c.want("402 Missing name", "CreateJobs", `jobs: [{"name":"a"},{"data":{}}]`)
	c.want(`200 OK {"jobIDs":[1,2,3]}`, "CreateJobs", `jobs: [{"name":"a","data":{"n":1}},{"name":"b","jobPriority":1000},{"name":"c"}]`)
	c.want("402 Missing numResults", "GetJobs", "name: *")
	c.want(`200 OK {"jobs":[{"data":{},"jobID":2,"name":"b"},{"data":{"n":1},"jobID":1,"name":"a"}]}`, "GetJobs", "name: *", "numResults: 2")
	c.want(`200 OK {"jobs":[{"data":{},"jobID":3,"name":"c"}]}`, "GetJobs", "name: *", "numResults: 2")
	c.want(noJob, "GetJobs", "name: *", "numResults: 2")
}

// A client that goes while it waits gets nothing, and loses nothing; nor does one that is gone when its answer comes.
func TestGone(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.dial()
	for range 20 {
		gone := s.dial()
		gone.send("GetJob", "name: foo", "connection: wait")
		_ = gone.conn.Close()
	}
	c.ask("CreateJob", "name: foo")
	c.eventually(`200 OK {"data":{},"jobID":1,"name":"foo"}`, "GetJob", "name: foo")
	c.ask("FinishJob", "jobID: 1")
	for n := range 20 {
		c.ask("CreateJob", "name: foo")
		gone := s.dial()
		gone.send("GetJob", "name: foo")
		_ = gone.conn.Close()
		c.eventually(fmt.Sprintf(`200 OK {"data":{},"jobID":%d,"name":"foo"}`, n+2), "GetJob", "name: foo", "connection: wait", "timeout: 1000")
		c.ask("FinishJob", fmt.Sprintf("jobID: %d", n+2))
	}
}

// Jobs of mock requests are for clients that ask for such.
func TestMocks(t *testing.T) {
	t.Parallel()
	c := start(t).dial()
	c.ask("CreateJob", "name: foo", "mockRequest: true")
	c.want(noJob, "GetJob", "name: foo")
	c.want(`200 OK {"data":{},"jobID":1,"name":"foo"}`, "GetJob", "name: foo", "mockRequest: true")
	c.ask("CreateJob", "name: bar", "sequentialKey: k", "mockRequest: true")
	c.ask("CreateJob", "name: bar", "sequentialKey: k", "mockRequest: true")
	c.ask("CreateJob", "name: bar", "sequentialKey: k")
	c.state(2, "QUEUED")
	c.state(3, "WAITING")
	c.want(`200 OK {"data":{},"jobID":4,"name":"bar"}`, "GetJob", "name: bar") // though nobody takes the mocks
}

// When the server stops, clients that wait are answered, and nobody else any more.
func TestStop(t *testing.T) {
	t.Parallel()
	s := start(t)
	waits, idle := s.dial(), s.dial()
	waits.send("GetJob", "name: foo", "connection: wait")
	idle.ask("CreateJob", "name: bar")
	enginetest.Until(t, "both commands have arrived", func() bool { return s.asked.Load() == 2 })
	s.stop()
	if status, _ := waits.read(); !strings.HasPrefix(status, "503 ") {
		t.Error(status)
	}
	if _, _, err := idle.tryRead(); err == nil {
		t.Error("the connection of a server that has stopped is open")
	}
}

// Of several commands that end one run in the same moment one does, and the others are refused.
func TestOneEndOfARun(t *testing.T) {
	t.Parallel()
	s := start(t)
	first, second := s.dial(), s.dial()
	ends := []string{"FinishJob", "FailJob", "RetryJob"}
	for round := range 30 {
		first.ask("CreateJob", "name: foo")
		id := fmt.Sprint(first.ask("GetJob", "name: foo")["jobID"])
		var all sync.WaitGroup
		var done atomic.Int32
		var won atomic.Value
		for i, c := range []*client{first, second} {
			verb := ends[(round+i*(1+round/10))%len(ends)]
			all.Go(func() {
				if _, err := fmt.Fprintf(c.conn, "%s\njobID: %s\n\n", verb, id); err != nil {
					t.Error(err)
				}
				switch status, _, err := c.tryRead(); {
				case err != nil:
					t.Error(err)
				case status == "200 OK":
					done.Add(1)
					won.Store(verb)
				case !strings.HasPrefix(status, "40"):
					t.Error(status)
				}
			})
		}
		all.Wait()
		first.send("QueryJob", "jobID: "+id)
		status, state := first.read()
		want := map[any]string{"FinishJob": "404", "FailJob": "FAILED", "RetryJob": "QUEUED"}[won.Load()]
		if done.Load() != 1 || !strings.Contains(status+state, want) {
			t.Errorf("round %d: %d commands ended the run, %v was the one: %s %s", round, done.Load(), won.Load(), status, state)
		}
		if status == "200 OK" {
			first.do("DeleteJob", "jobID: "+id)
		}
	}
}

// taken has a client take the job that is to end just before.
type taken struct {
	bedrock.Store
	take func()
}

func (s *taken) TerminateSeen(ctx context.Context, seen *job.Info) error {
	s.take()
	return s.Store.TerminateSeen(ctx, seen)
}

// A job that a client takes in the moment in which another one deletes or cancels it is taken, and not deleted.
func TestDeleteAgainstGet(t *testing.T) {
	t.Parallel()
	for method, want := range map[string]string{"DeleteJob": "405 Can't delete a RUNNING job", "CancelJob": "200 OK"} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			c := s.dial()
			c.ask("CreateJob", "name: foo")
			c.ask("GetJob", "name: foo")
			c.ask("CreateJob", "name: child", "parentJobID: 1")
			c.ask("FinishJob", "jobID: 1")
			leases, err := worker.NewLeases(worker.LeaseConfig{Store: s.store})
			if err != nil {
				t.Fatal(err)
			}
			times := 0
			service := bedrock.New(&taken{s.store, func() {
				if times++; times == 1 {
					c.ask("GetJob", "name: child")
				}
			}}, leases)
			command, err := bedrock.CommandOf(method)
			if err != nil {
				t.Fatal(err)
			}
			r := service.Do(t.Context(), command, &bedrock.Request{Params: map[string]string{"jobid": "2"}})
			if got := fmt.Sprint(r.Status, " ", r.Text); got != want || times != 1 {
				t.Errorf("%s, want %s; tried %d times", got, want, times)
			}
			c.state(2, "RUNNING")
			c.want("200 OK", "FinishJob", "jobID: 2")
		})
	}
}

// Of many jobs that some clients take while others delete them each is taken or deleted, and none both.
func TestDeleteBesideGet(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.dial()
	const n = 100
	for range n {
		c.ask("CreateJob", "name: foo")
	}
	deleted := make(chan map[int]bool, 1)
	d := s.dial()
	go func() {
		all := map[int]bool{}
		for i := n; i > 0; i-- {
			if got := d.do("DeleteJob", jobID(i)); strings.HasPrefix(got, "200") {
				all[i] = true
			} else if !strings.HasPrefix(got, "405 Can't delete a RUNNING job") {
				t.Errorf("job %d: %s", i, got)
			}
		}
		deleted <- all
	}()
	got := map[int]bool{}
	for {
		answer := c.do("GetJob", "name: foo")
		if !strings.HasPrefix(answer, "200") {
			break
		}
		var body struct{ JobID int }
		_, text, _ := strings.Cut(answer, "OK ")
		if err := json.Unmarshal([]byte(text), &body); err != nil {
			t.Fatal(err, answer)
		}
		got[body.JobID] = true
	}
	gone := <-deleted
	for i := 1; i <= n; i++ {
		if got[i] == gone[i] {
			t.Errorf("job %d: taken %v, deleted %v", i, got[i], gone[i])
		}
	}
}
