package main

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/api"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// A graph says in weir jobs that a job in it is throttled, and no other graph does.
func TestJobsNamesThrottledMemberOfGraph(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	throttled, well := s.graph("report", "one ", "two"), s.graph("ages", 12)
	now, err := s.store.Now(t.Context())
	enginetest.Check(s, err)
	if left := now.Truncate(time.Minute).Add(time.Minute).Sub(now); left < 10*time.Second {
		time.Sleep(left) // a job is throttled until the minute is over, which must not be now
	}
	tree, err := throttled.Tree(t.Context())
	enginetest.Check(s, err)
	for _, i := range tree {
		if i.Name == "trim" {
			s.crawl(s.client.At(i.ID))
		}
	}
	for _, i := range tree {
		if i.Name != "trim" {
			continue
		}
		if out := weir(t, s.url, "run", string(i.ID)); !strings.Contains(out, "is throttled: it ran 2 times this minute, as often as MaxRunsPerMinute") {
			t.Errorf("weir run says of a throttled job: %s", out)
		}
	}
	var shown []struct {
		ID     job.ID
		Reason *string
	}
	enginetest.Check(s, json.Unmarshal([]byte(s.play("weir jobs -o json")), &shown))
	if len(shown) != 2 {
		t.Fatalf("jobs: %+v", shown)
	}
	for _, i := range shown {
		switch {
		case i.ID == well.ID() && i.Reason != nil:
			t.Errorf("the graph whose jobs are well: %s", *i.Reason)
		case i.ID == throttled.ID() && (i.Reason == nil || !strings.HasPrefix(*i.Reason, "trim: rate: it ran 2 times this minute")):
			t.Errorf("the graph with a throttled job: %v", i.Reason)
		}
	}
	if out := s.play("weir jobs"); !strings.Contains(out, "trim: rate: it ran 2 times") {
		t.Errorf("weir jobs does not name the throttled job:\n%s", out)
	}
}

// Whatever the format, a list that is cut says so.
func TestJobsSaysThatThereAreMore(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.graph("ages", 12)
	for _, format := range []string{"table", "json", "jsonl", "name", "yaml"} {
		var out, errs bytes.Buffer
		code := run(t.Context(), []string{"jobs", "--all", "--limit", "1", "-o", format, "--redis", s.url}, &out, &errs)
		if code != 0 || out.Len() == 0 || !strings.HasPrefix(errs.String(), "there are more: go on with --after ") {
			t.Errorf("-o %s: code %d, %s", format, code, errs.String())
		}
	}
}

// A command that asks a locked job for something says that the lock comes first.
func TestActsOnALockedJob(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	tree, err := s.graph("ages", 12).Tree(t.Context())
	enginetest.Check(s, err)
	id := tree[len(tree)-1].ID
	if _, err := s.client.At(id).Lock(job.WithContext(t.Context(), port.Context{port.ContextBy: "ann"}), time.Hour, 0); err != nil {
		t.Fatal(err)
	}
	if out := weir(t, s.url, "jobs", "--all"); strings.Count(out, "locked by ann\n") != 1 {
		t.Errorf("weir jobs does not say which job is locked:\n%s", out)
	}
	for _, c := range []struct{ command, want string }{
		{"run", "will run after its lock (by ann, "},
		{"terminate", "will end after its lock (by ann, "},
	} {
		if out := weir(t, s.url, c.command, string(id)); !strings.Contains(out, c.want) || !strings.Contains(out, "weir unlock "+string(id)+" --force") {
			t.Errorf("weir %s says of a locked job: %s", c.command, out)
		}
	}
	if out := weir(t, s.url, "unlock", string(id), "--force"); !strings.Contains(out, "is unlocked") {
		t.Errorf("weir unlock: %s", out)
	}
}

// TestJobsFit: the list of jobs is not wider than the terminal, and its columns go in the order of what they say.
func TestJobsFit(t *testing.T) {
	long, key := strings.Repeat("long ", 20), "customer 7"
	all := []*api.Job{{
		ID: "019e1f0e-0000-7000-8000-000000000001", Type: "some.Resize", Name: &key, Status: "terminated", Aliases: []string{"thumbs-of-2026"},
		SequentialKey: &key, Labels: map[string]string{"trigger": "019e1f0e-0000-7000-8000-000000000002"}, Reason: &long,
	}}
	for width, want := range map[string]string{
		"":    "ID TYPE NAME STATUS AGE ALIASES SEQUENTIAL KEY LABELS REASON",
		"130": "ID TYPE NAME STATUS AGE ALIASES SEQUENTIAL KEY LABELS REASON",
		"100": "ID TYPE NAME STATUS AGE ALIASES LABELS REASON",
		"80":  "ID TYPE NAME STATUS AGE ALIASES",
		"72":  "ID TYPE NAME STATUS AGE",
		"64":  "ID TYPE STATUS AGE",
		"60":  "ID TYPE STATUS",
		"50":  "ID STATUS",
		"40":  "TYPE NAME STATUS AGE",
		"20":  "TYPE STATUS",
	} {
		t.Setenv("COLUMNS", width)
		var out bytes.Buffer
		enginetest.Check(t, jobTable(&out, all, job.Newest))
		head, _, _ := strings.Cut(out.String(), "\n")
		if got := strings.Join(strings.Fields(head), " "); got != want {
			t.Errorf("in %s columns: %s, want %s", width, got, want)
		}
		if !strings.Contains(out.String(), "terminated") {
			t.Errorf("in %s columns the status cannot be read:\n%s", width, &out)
		}
		for line := range strings.Lines(out.String()) {
			if n, err := strconv.Atoi(width); err == nil && term.Width(strings.TrimSuffix(line, "\n")) > n {
				t.Errorf("wider than %s columns: %s", width, line)
			}
		}
	}
}
