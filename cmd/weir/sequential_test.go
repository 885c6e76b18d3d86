package main

import (
	"strings"
	"testing"

	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
)

// TestSequentialKey: jobs with one key are created by flag and by file; the commands say which of them waits for which.
func TestSequentialKey(t *testing.T) {
	t.Parallel()
	url := redistest.Start(t).URL()
	store := enginetest.Open(t, redisstore.Config{URL: url})
	enginetest.Check(t, store.Register(t.Context(), []job.TypeInfo{{Type: "T", Queue: job.DefaultQueue}}))
	create := func() string {
		return strings.TrimSpace(weir(t, url, "create", "T", "--sequential-key", "customer 7"))
	}
	first, second, third := create(), create(), create()
	for _, one := range []struct {
		args []string
		want string
	}{
		{[]string{"why", third}, "waits for job " + first + ", which holds key customer 7: 2 before it."},
		{[]string{"show", second}, "customer 7, which job " + first + " holds; 1 before it, 1 behind"},
		{[]string{"show", first}, "customer 7, which it holds; 2 waiting"},
		{[]string{"show", second, "-o", "json"}, `"sequential_key": "customer 7"`},
		{[]string{"show", second, "-o", "json"}, `"before": 1`},
		{[]string{"jobs", "--status", "waiting", "--count"}, "2\n"},
		{[]string{"jobs", "--sequential-key", "customer 7", "--count"}, "3\n"},
		{[]string{"jobs", "--sequential-key", "customer 7", "--status", "waiting"}, "SEQUENTIAL KEY"},
		{[]string{"jobs", "--sequential-key", "customer 8", "--count"}, "0\n"},
		{[]string{"tree", second}, "waiting"},
	} {
		text := strings.Join(strings.Fields(weir(t, url, one.args...)), " ")
		if !strings.Contains(text, strings.TrimSpace(one.want)) {
			t.Errorf("weir %s says\n%s\nwant %q", strings.Join(one.args, " "), text, one.want)
		}
	}
}
