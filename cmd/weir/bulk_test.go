package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/statemachine"
)

// TestExitCodesOfMany: the exit code is that of the worst that happened to one of the jobs.
func TestExitCodesOfMany(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	store := enginetest.Open(t, redisstore.Config{URL: server.URL()})
	for range 2 {
		if _, err := client.New(store).Start(t.Context(), job.Single(&resize{}, "")); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		args []string
		want int
	}{
		{[]string{"jobs", "--status", "failed"}, 0},
		{[]string{"jobs", "--status", "none"}, exitUsage},
		{[]string{"jobs", "--after", "019e1f0e-5a3c-7c1d-9f7e-0a4b7c2d8e11", "--all"}, exitNotFound},
		{[]string{"retry", "--type", "Resize", "--yes"}, 0},
		{[]string{"retry", "--type", "Resize"}, exitUsage},
		{[]string{"retry"}, exitUsage},
		{[]string{"retry", "--type", "Resize", "--status", "queued", "--dry-run"}, 0},
		{[]string{"retry", "--type", "Resize", "--status", "queued", "--yes"}, exitRefused},
		{[]string{"run", "--type", "Resize", "--yes"}, 0},
		{[]string{"terminate", "--type", "Resize", "--yes"}, 0},
		{[]string{"delete", "--newer", "1h", "--status", "terminating", "--yes"}, exitRefused},
	} {
		var out bytes.Buffer
		if got := run(t.Context(), append(c.args, "--redis", server.URL()), &out, &out); got != c.want {
			t.Errorf("%q: exit code %d, want %d\n%s", c.args, got, c.want, &out)
		}
	}
}

func TestWorse(t *testing.T) {
	t.Parallel()
	order := []error{
		fmt.Errorf("%w: x", job.ErrNotFound), fmt.Errorf("%w: x", job.ErrFailed), fmt.Errorf("%w: x", job.ErrStatus),
		errors.New("nobody expects it"),
	}
	for n, a := range order {
		for m, b := range order {
			if got := worse(a, b); got != (n > m) {
				t.Errorf("%v is worse than %v: %v", a, b, got)
			}
		}
	}
}

// TestGoesOn: one job that refuses does not keep others from it; a Redis that is gone does.
func TestGoesOn(t *testing.T) {
	t.Parallel()
	jobs := []*job.Info{{ID: "a"}, {ID: "b"}, {ID: "c"}}
	cl := client.New(nil)
	try := func(kind error, output string) (done, said string, err error) {
		c := newRoot(&term.Wish{})
		var out, errs bytes.Buffer
		c.SetOut(&out)
		c.SetErr(&errs)
		err = deed{do: func(_ context.Context, h *client.Handle, _ *job.Info) (string, error) {
			if h.ID() == "b" {
				return "", fmt.Errorf("%w: two\nlines", kind)
			}
			return "is done", nil
		}}.each(t.Context(), c, &settings{output: output}, cl, jobs)
		return out.String(), errs.String(), err
	}
	done, said, err := try(job.ErrStatus, "table")
	if done != "job a is done\njob c is done\n" || said != "weir: "+job.ErrStatus.Error()+": two lines\n" ||
		!errors.Is(err, job.ErrStatus) || err.Error() != "not done to 1 of 3 jobs" {
		t.Errorf("refused: %q, %q, %v", done, said, err)
	}
	done, said, err = try(job.ErrUnreachable, "table")
	if done != "job a is done\n" || said != "" || !errors.Is(err, job.ErrUnreachable) {
		t.Errorf("unreachable: %q, %q, %v", done, said, err)
	}
	for output, want := range map[string]string{"name": "a\n", "json": "[\n  {\n    \"job\": \"a\",\n    \"done\": \"is done\"\n  }\n]\n"} {
		if done, _, err = try(job.ErrUnreachable, output); done != want || !errors.Is(err, job.ErrUnreachable) {
			t.Errorf("unreachable, -o %s: %q, %v", output, done, err)
		}
	}
}

// TestGraphsDoNotRun: who asks for a run of a graph is told what to ask for instead.
func TestGraphsDoNotRun(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	h := s.graph("report", "one")
	s.engine()
	check := func(command, want string) {
		t.Helper()
		var out bytes.Buffer
		code := run(t.Context(), append(strings.Fields(command), "--redis", s.url), &out, &out)
		if !strings.Contains(out.String(), want) || code != exitRefused {
			t.Errorf("weir %s: exit code %d, %s", command, code, out.String())
		}
	}
	check("run report", "is a graph, and only the jobs in it run; to retry those that failed: weir retry report --tree")
	check("delete report", "end it first: weir terminate report --recursive")
	enginetest.Check(s, h.TerminateAll(t.Context()))
	_, err := h.WaitFor(t.Context(), func(i *job.Info) bool { return i.Status == statemachine.Terminated })
	enginetest.Check(s, err)
	for _, command := range []string{"run report --force", "run report", "retry report"} {
		check(command, "is terminated, and does not run again: start it anew")
	}
	check("send report lines 1", "start its graph anew")
}
