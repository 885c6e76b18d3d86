package bedrock_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/weirworks/weir/bedrock"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/worker"
)

// What a command does not know is refused, with what was meant; what Bedrock's clients send with each command is not.
func TestUnknownParametersAreRefused(t *testing.T) {
	t.Parallel()
	c := start(t).dial()
	c.want(`402 Unknown parameter "namee": did you mean "name"?`, "CreateJob", "namee: foo", "name: foo")
	c.want(`402 Unknown parameter "sequentialkeys": did you mean "sequentialKey"?`, "CreateJob", "name: foo", "sequentialKeys: k")
	c.want(`402 Unknown parameter "nam": did you mean "name"?`, "CreateJobs", `jobs: [{"name":"foo"},{"name":"foo","nam":1}]`)
	c.want(noJob, "GetJob", "name: foo") // nothing was created
	c.want(`200 OK {"jobID":1}`, "CreateJob", "name: foo", "writeConsistency: ASYNC", "requestID: r7", "lastIP: 10.0.0.1", "priority: 500")
	c.want(`HTTP/1.1 200 OK {"jobID":2}`, "CreateJob / HTTP/1.1", "name: foo", "X-Other: 1")
	c.want("400 Query is not served, as there is no SQL here: QueryJob shows a job, and weir jobs lists them", "Query", "query: select * from jobs;")
}

// What two programs could read in two ways is refused.
func TestTwiceIsRefused(t *testing.T) {
	t.Parallel()
	c := start(t).dial()
	body := func(text string) []string {
		return []string{"CreateJob", fmt.Sprintf("Content-Length: %d\n\n%s", len(text), text)}
	}
	c.want(`402 Parameter "name" is given twice`, "CreateJob", "name: foo", "NAME: bar")
	c.want("402 Data is not a valid JSON Object", "CreateJob", "name: foo", `data: {"a":1,"a":2}`)
	c.want("402 Data is not a valid JSON Object", "CreateJob", "name: foo", `data: {"a":1e400}`)
	for text, want := range map[string]string{
		`{"name":"foo","NAME":"bar"}`: `400 Malformed body: it has "name" twice`,
		`{"name":"foo","name":"bar"}`: `400 Malformed body: it has the key "name" twice in one object, at byte 20`,
	} {
		c.send(body(text)...)
		if status, _ := c.read(); status != want {
			t.Errorf("%s: %s, want %s", text, status, want)
		}
		c = c.dial()
	}
	c.want(noJob, "GetJob", "name: *")
	c.want(`HTTP/1.1 200 OK {"jobID":1}`, "CreateJob / HTTP/1.1", "name: foo", "X-Other: 1", "X-Other: 2")
}

// Names and keys that cannot be shown are refused, as are jobIDs that no job has.
func TestNamesAreText(t *testing.T) {
	t.Parallel()
	c := start(t).dial()
	for _, name := range []string{"a\x00b", "a\xffb", "a\x7f", "a\tb", "\u0085"} {
		c.want("402 Malformed name", "CreateJob", "name: x"+name+"x")
		c.want("402 Malformed name", "GetJob", "name: x"+name+"x")
		c.want("402 Malformed sequentialKey", "CreateJob", "name: x", "sequentialKey: x"+name+"x")
	}
	c.want(`200 OK {"jobID":1}`, "CreateJob", "name: grün/日本")
	c.want(`200 OK {"data":{},"jobID":1,"name":"grün/日本"}`, "GetJob", "name: grün/*")
	for _, id := range []string{"-1", "0", "-9223372036854775808", "abc"} {
		c.want("402 Malformed jobID", "QueryJob", "jobID: "+id)
	}
	c.want(noNumber, "QueryJob", "jobID: 999")
}

// counting counts the calls of a store by which jobs are created.
type counting struct {
	bedrock.Store
	calls int
}

func (c *counting) Numbers(ctx context.Context, name string, n int64) (int64, error) {
	c.calls++
	return c.Store.Numbers(ctx, name, n)
}

func (c *counting) Claim(ctx context.Context, alias string, id job.ID) (job.ID, error) {
	c.calls++
	return c.Store.Claim(ctx, alias, id)
}

func (c *counting) Create(ctx context.Context, id job.ID, p *job.Plan, by string) (bool, error) {
	c.calls++
	return c.Store.Create(ctx, id, p, by)
}

func (c *counting) ClaimMany(ctx context.Context, aliases []string, ids []job.ID) []error {
	c.calls++
	return c.Store.ClaimMany(ctx, aliases, ids)
}

func (c *counting) CreateMany(ctx context.Context, all []store.Creation) ([]bool, []error) {
	c.calls++
	return c.Store.CreateMany(ctx, all)
}

// Many jobs are created in as many round trips as one: their numbers are in the order of the list, also between jobs that are created by
// themselves.
func TestManyJobsTakeFewRoundTrips(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.dial()
	leases, err := worker.NewLeases(worker.LeaseConfig{Store: s.store})
	if err != nil {
		t.Fatal(err)
	}
	store := &counting{Store: s.store}
	create, err := bedrock.CommandOf("CreateJobs")
	if err != nil {
		t.Fatal(err)
	}
	jobs := make([]string, 400)
	for i := range jobs {
		jobs[i] = fmt.Sprintf(`{"name":"n%d","data":{"i":%d}}`, i, i)
	}
	r := bedrock.New(store, leases).Do(t.Context(), create, &bedrock.Request{Params: map[string]string{"jobs": "[" + strings.Join(jobs, ",") + "]"}})
	if r.Status != 200 || !strings.HasSuffix(string(r.Body), ",399,400]}") {
		t.Fatalf("%d %s %s", r.Status, r.Text, r.Body)
	}
	if store.calls != 3 {
		t.Errorf("%d calls for 400 jobs, want 3", store.calls)
	}
	c.want(`200 OK {"data":{"i":399},"jobID":400,"name":"n399"}`, "GetJob", "name: n399")
	c.want(`200 OK {"jobIDs":[401,402,403,401]}`, "CreateJobs", `jobs: [{"name":"u","unique":true},{"name":"a"},{"name":"b","sequentialKey":"k"},{"name":"u","unique":true}]`)
}
