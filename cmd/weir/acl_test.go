package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/internal/enginetest"
)

// as returns the URL of the world's Redis for a user with the rules that weir acl prints.
func (w *world) as(role string) string {
	w.Helper()
	var stdout, stderr bytes.Buffer
	if code := run(w.Context(), []string{"acl", role, "--redis", w.url}, &stdout, &stderr); code != 0 {
		w.Fatalf("weir acl %s: %s", role, stderr.String())
	}
	words := []any{"ACL", "SETUSER", role, "on", ">secret"}
	for _, rule := range strings.Fields(stdout.String()) {
		words = append(words, rule)
	}
	enginetest.Check(w, w.rdb.Do(w.Context(), words...).Err())
	return strings.Replace(w.url, "redis://", "redis://"+role+":secret@", 1)
}

// keys is what is in the world's Redis, except the tokens of acts.
func (w *world) keys() map[string]string {
	w.Helper()
	ctx := context.WithoutCancel(w.Context())
	all := map[string]string{}
	keys, err := w.rdb.Keys(ctx, "*").Result()
	enginetest.Check(w, err)
	for _, k := range keys {
		if all[k], err = w.rdb.Dump(ctx, k).Result(); err != nil && !errors.Is(err, redis.Nil) {
			w.Fatal(err)
		}
	}
	return all
}

// Every command that looks works for a user with the reader's rules, and every command that
// acts is refused and says which rules there are.
func TestReader(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	url := w.as("reader")
	before := w.keys()
	do := func(args ...string) (int, string) {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), append(args, "--redis", url), &stdout, &stderr)
		return code, stderr.String()
	}
	for _, args := range [][]string{
		{"jobs"},
		{"jobs", "--all", "--count"},
		{"jobs", "--status", "failed,scheduled", "--sort", "type"},
		{"jobs", "--alias", "*"},
		{"show", "one"},
		{"show", string(w.id(aFailed))},
		{"show", string(w.album.ID())[:20]},
		{"tree", "album"},
		{"tree"},
		{"why", "album"},
		{"ports", "one"},
		{"peek", "one", "in"},
		{"log", "album"},
		{"trace", "one", "thumb"},
		{"types"},
		{"queues"},
		{"workers"},
		{"stats"},
		{"state", "get", "one", "cursor"},
		{"wait", string(w.id(aDone))},
	} {
		if code, text := do(args...); code != 0 {
			t.Errorf("%v: exit code %d: %s", args, code, text)
		}
	}
	for _, args := range [][]string{{"doctor"}, {"doctor", "--deep"}} { // there are no engines
		if code, text := do(args...); code != 1 || !strings.Contains(text, "problem") {
			t.Errorf("%v: exit code %d: %s", args, code, text)
		}
	}
	acts := [][]string{
		{"create", "img.Resize"},
		{"send", "one", "in", "4"},
		{"read", "one", "in"},
		{"retry", string(w.id(aFailed))},
		{"terminate", "one"},
		{"delete", string(w.id(aEnded))},
		{"state", "set", "one", "cursor=1"},
		{"alias", "one", "due"},
		{"adopt", "album", "one", "x"},
		{"queue", "pause", "default"},
		{"lock", "one"},
		{"priority", "one", "900"},
		{"unlock", string(w.id(aLocked)), "--force"},
	}
	for _, args := range acts {
		if code, text := do(args...); code != 2 || !strings.Contains(text, "may not do this") || !strings.Contains(text, "weir acl") {
			t.Errorf("%v: exit code %d: %s", args, code, text)
		}
	}
	for k, v := range w.keys() {
		if before[k] != v && !strings.HasSuffix(k, "weir:{main:0}:due") {
			t.Errorf("a reader changed %s", k)
		}
	}
}
