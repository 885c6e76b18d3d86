package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
)

// TestShowArgsAndTime: a look at a job tells its args and, if it waits for a time, which one.
func TestShowArgsAndTime(t *testing.T) {
	t.Parallel()
	url := redistest.Start(t).URL()
	store := enginetest.Open(t, redisstore.Config{URL: url})
	enginetest.Check(t, store.Register(t.Context(), []job.TypeInfo{{Type: "T", Queue: job.DefaultQueue}}))
	long := strings.Repeat("x", 1000)
	id := strings.TrimSpace(weir(t, url, "create", "T", "--args", `{"Width":640,"Text":"`+long+`"}`, "--in", "1h"))
	text := weir(t, url, "show", id)
	if !strings.Contains(text, `{"Width":640,`) || strings.Contains(text, long) || !strings.Contains(text, "next run") {
		t.Errorf("show says\n%s", text)
	}
	var shown struct {
		Args   map[string]any `json:"args"`
		NextAt time.Time      `json:"next_at"`
	}
	enginetest.Check(t, json.Unmarshal([]byte(weir(t, url, "show", id, "-o", "json")), &shown))
	if in := time.Until(shown.NextAt); shown.Args["Text"] != long || in > time.Hour || in < 59*time.Minute {
		t.Errorf("shown: next run in %s, args of %d", in, len(shown.Args))
	}
	if text := weir(t, url, "jobs", "-o", "json"); strings.Contains(text, "Width") || !strings.Contains(text, "next_at") {
		t.Errorf("a list says\n%s", text)
	}
	if text := weir(t, url, "tree", id); !strings.Contains(text, "next run in 1h0m") && !strings.Contains(text, "next run in 59m") {
		t.Errorf("tree says\n%s", text)
	}
}
