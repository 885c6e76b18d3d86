package main

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
)

// TestTypeLimits: a type is described with what limits its runs.
func TestTypeLimits(t *testing.T) {
	t.Parallel()
	url := redistest.Start(t).URL()
	store := enginetest.Open(t, redisstore.Config{URL: url})
	enginetest.Check(t, store.Register(t.Context(), []job.TypeInfo{{
		Type: "Call", Queue: job.DefaultQueue, Ports: []port.Spec{{Name: "in", Dir: port.Input}}, MaxRunning: 3, MaxRunningBy: "Customer", MaxRuns: 1000,
		MaxRunsPer: time.Second, MaxRunsPerMinute: 10, Timeout: 90 * time.Second, Tries: 5,
	}, {Type: "Free", Queue: job.DefaultQueue, Tries: 1}}))
	text := weir(t, url, "types", "Call")
	for _, line := range []string{"LIMIT", "3 runs at once +the jobs with one Customer", "1,000 runs in 1s +all its jobs", "10 runs in a minute +a job", "1m30s +a run", "5 tries +a job"} {
		if !regexp.MustCompile(line).MatchString(text) {
			t.Errorf("no %q in\n%s", line, text)
		}
	}
	if text := weir(t, url, "types", "Free"); strings.Contains(text, "LIMIT") {
		t.Errorf("limits of a type without any:\n%s", text)
	}
	if text := weir(t, url, "types", "Call", "-o", "json"); !strings.Contains(text, `"max_runs_per_minute": 10`) || !strings.Contains(text, `"timeout": 90000000000`) {
		t.Errorf("as JSON:\n%s", text)
	}
}

// TestOwnTypesFirst: components do not hide a user's types.
func TestOwnTypesFirst(t *testing.T) {
	t.Parallel()
	var all []job.TypeInfo
	for _, name := range []string{"batch", "Resize", "map", "upload", "zip"} {
		all = append(all, job.TypeInfo{Type: name, Queue: job.DefaultQueue})
	}
	var text strings.Builder
	enginetest.Check(t, typeTable(&text, all))
	var first []string
	for _, line := range strings.Split(strings.TrimSpace(text.String()), "\n")[1:] {
		first = append(first, strings.Fields(line)[0])
	}
	if got := strings.Join(first, " "); got != "Resize upload batch map zip" || all[0].Type != "batch" {
		t.Errorf("%s:\n%s", got, text.String())
	}
}
