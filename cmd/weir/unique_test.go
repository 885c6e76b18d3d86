package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
)

// TestUniqueKey: jobs that are the same work are created once, by flags and by file.
func TestUniqueKey(t *testing.T) {
	t.Parallel()
	url := redistest.Start(t).URL()
	store := enginetest.Open(t, redisstore.Config{URL: url})
	if err := store.Register(t.Context(), []job.TypeInfo{{Type: "T", Queue: job.DefaultQueue}, {Type: "U", Queue: job.DefaultQueue}}); err != nil {
		t.Fatal(err)
	}
	create := func(args ...string) string {
		return strings.TrimSpace(weir(t, url, append([]string{"create"}, args...)...))
	}
	byArgs := create("T", "--args", `{"N":1}`, "--unique")
	byKey := create("T", "--unique-key", "digest 7", "--unique-for", "24h")
	for _, one := range []struct {
		what, got, want string
	}{
		{"the same args", create("T", "--args", `{ "N": 1 }`, "--unique"), byArgs},
		{"by --unique-for alone", create("T", "--args", `{"N":1}`, "--unique-for", "1h"), byArgs},
		{"the same key", create("U", "--unique-key", "digest 7"), byKey},
	} {
		if one.got != one.want {
			t.Errorf("%s: %s, want %s", one.what, one.got, one.want)
		}
	}
	for _, other := range []string{create("T", "--args", `{"N":2}`, "--unique"), create("U", "--args", `{"N":1}`, "--unique"), create("T", "--args", `{"N":1}`)} {
		if other == byArgs {
			t.Errorf("%s is other work", other)
		}
	}
	if text := weir(t, url, "show", byKey); !strings.Contains(text, "unique key") || !strings.Contains(text, "digest 7") {
		t.Errorf("show says\n%s", text)
	}
	if text := weir(t, url, "show", byKey, "-o", "json"); !strings.Contains(text, `"unique_key": "digest 7"`) {
		t.Errorf("show says\n%s", text)
	}
	if id := create("T", "--args", `{"N":2}`, "--unique-key", "digest 7", "--merge"); id != byKey {
		t.Errorf("merged into %s, want %s", id, byKey)
	}
	if info, err := store.Info(t.Context(), job.ID(byKey)); err != nil || string(info.Args) != `{"N":2}` {
		t.Errorf("after merging: %v, %v", info, err)
	}
	if text := weir(t, url, "jobs", "--unique-key", "digest 7", "-o", "name"); strings.TrimSpace(text) != byKey {
		t.Errorf("jobs with the key: %s", text)
	}
	for want, args := range map[string][]string{
		"created: ": {"--unique-key", "digest 8"},
		"found: ":   {"--unique-key", "digest 7"},
		"merged: ":  {"--unique-key", "digest 7", "--args", `{"N":3}`, "--merge"},
	} {
		var out, errs bytes.Buffer
		if code := run(t.Context(), append([]string{"create", "T", "--redis", url}, args...), &out, &errs); code != 0 || !strings.HasPrefix(errs.String(), want) {
			t.Errorf("create %v: exit code %d, says %q, want %q", args, code, &errs, want)
		}
	}
	file := filepath.Join(t.TempDir(), "jobs")
	lines := `{"type":"T","args":{"N":1},"unique":{}}
{"type":"T","unique":{"key":"digest 7","for":"1h"}}
{"type":"T","unique":{"key":"new"}}
{"type":"U","unique":{"key":"new"}}
`
	enginetest.Check(t, os.WriteFile(file, []byte(lines), 0o600))
	ids := strings.Fields(create("--from", file))
	if len(ids) != 4 || ids[0] != byArgs || ids[1] != byKey || ids[2] == byKey || ids[3] != ids[2] {
		t.Errorf("of a file: %v", ids)
	}
}

// TestEmptyNames: an empty name, as a variable of a script that is not set gives it, is no job without a name.
func TestEmptyNames(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"create", "T", "--alias="}, {"create", "T", "--parent="}, {"create", "T", "--name="}, {"trigger", "add", "--type", "T", "--alias="}} {
		var errs bytes.Buffer
		if code := run(t.Context(), args, &bytes.Buffer{}, &errs); code != exitUsage || !strings.Contains(errs.String(), "is empty: give a text, or leave it out") {
			t.Errorf("%v: exit code %d, says %q", args, code, &errs)
		}
	}
}
