package runner_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/handler"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/job"
)

// slow are handlers that go on for three seconds after they have said how far they are.
var slow = map[string]handler.Definition{
	"node":   js(`console.log('before'); console.log('P: 2/5 pages'); await new Promise(done => setTimeout(done, 3000)); console.log('P: hello'); return 1`),
	"python": {Lang: handler.Python, Body: "import time\nprint('before')\nprint('P: 2/5 pages')\ntime.sleep(3)\nprint('P: hello')\nreturn 1"},
	"sh":     {Lang: handler.Shell, Body: "echo before; echo 'P: 2/5 pages'; sleep 3; echo 'P: hello'; echo -n 1 >&3"},
}

// While a handler runs, its job tells how far it is; when the payload is done there is nothing more to tell, and the lines are not in the log.
func TestProgressOfAHandler(t *testing.T) {
	t.Parallel()
	h := newHouse(t, slow)
	jobs := map[string]*client.Handle{}
	for name := range slow {
		jobs[name] = h.add(name, "x")
	}
	for name, handle := range jobs {
		h.until(name+" tells how far it is", func() bool {
			info, err := handle.Info(context.Background())
			enginetest.Check(t, err)
			return info.Status == job.Running && info.Progress != nil && *info.Progress == job.Progress{Done: 2, Total: 5, Text: "pages"}
		})
	}
	for name, handle := range jobs {
		info := h.ended(handle)
		if info.Status != job.Completed || info.Progress != nil {
			t.Errorf("%s: %s %q, progress %v; want completed, and none", name, info.Status, info.Reason, info.Progress)
		}
		r, err := handle.OpenLog(context.Background(), false)
		enginetest.Check(t, err)
		entries, err := r.Last(context.Background(), 100, info.Created)
		enginetest.Check(t, err)
		var notes []string
		for _, e := range entries {
			if e.Note != nil {
				notes = append(notes, string(e.Note))
			}
		}
		if got := strings.Join(notes, " "); got != `"before" "P: hello"` {
			t.Errorf("%s: the log is %s", name, got)
		}
	}
}

// In a batch each payload tells of itself alone, and afterEach of none.
func TestProgressInABatch(t *testing.T) {
	t.Parallel()
	p := newPool(t, nil)
	for _, d := range []handler.Definition{
		{Lang: handler.Node, Body: "console.log('P: 1/2 of ' + payload); console.error('P: 2/2'); return payload", AfterEach: "console.log('P: 9/9 of all')"},
		{Lang: handler.Shell, Body: "read line; echo \"P: 1/2 of $line\"; echo 'P: 2/2' >&2; echo \"$line\" >&3", AfterEach: "echo 'P: 9/9 of all'"},
	} {
		var mu sync.Mutex
		got := map[string][]string{}
		some := payloads("a", "b", "c")
		for i := range some {
			some[i].Progress = func(far job.Progress) {
				mu.Lock()
				defer mu.Unlock()
				got[some[i].ID] = append(got[some[i].ID], far.String())
			}
		}
		for range 2 { // the second time in the process of the first
			results, err := p.Do(context.Background(), stored("far-"+d.Lang, d), some)
			enginetest.Check(t, err)
			if len(results) != 3 || slices.ContainsFunc(results, func(r handler.Result) bool { return r.Status != 200 }) {
				t.Fatalf("%s: %+v", d.Lang, results)
			}
		}
		mu.Lock()
		if text := fmt.Sprint(got); text != "map[p0:[1/2 of a 1/2 of a] p1:[1/2 of b 1/2 of b] p2:[1/2 of c 1/2 of c]]" {
			t.Errorf("%s: %s", d.Lang, text)
		}
		mu.Unlock()
	}
}

// What a try said that failed is gone, too, once another one has ended well.
func TestProgressOfATryThatFailed(t *testing.T) {
	t.Parallel()
	h := newHouse(t, map[string]handler.Definition{
		"twice": js("if (job.try > 1) return job.try; console.log('P: 1/2'); await new Promise(done => setTimeout(done, 1500)); job.retry('busy')", quick(0)),
	})
	handle := h.add("twice", "x")
	h.until("it tells how far it is", func() bool {
		info, err := handle.Info(context.Background())
		enginetest.Check(t, err)
		return info.Progress != nil
	})
	if info := h.ended(handle); info.Status != job.Completed || info.Progress != nil {
		t.Errorf("%s %q, progress %v", info.Status, info.Reason, info.Progress)
	}
}
