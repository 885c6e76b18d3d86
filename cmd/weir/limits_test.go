package main

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/explain"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
)

// TestLimits: a limit of a queue is set, shown while a run holds a place of it, and ended.
func TestLimits(t *testing.T) {
	t.Parallel()
	url := redistest.Start(t).URL()
	s := enginetest.Open(t, redisstore.Config{URL: url})
	enginetest.Check(t, s.Register(t.Context(), []job.TypeInfo{{Type: "T", Queue: "mail"}}))
	if text := weir(t, url, "queue", "limit", "mail", "1"); text != "queue mail has at most 1 run at once; engines keep to a new limit within five seconds\n" {
		t.Errorf("setting it says %q", text)
	}
	if text := weir(t, url, "limits"); !strings.Contains(text, "queue:mail  1       0        0  ") {
		t.Errorf("an idle limit:\n%s", text)
	}
	if text := weir(t, url, "queues"); !strings.Contains(text, "mail   open   0        0        0       1      ") {
		t.Errorf("the queue does not say its limit:\n%s", text)
	}
	limits, err := s.QueueLimits(t.Context())
	if err != nil || limits["mail"] != 1 {
		t.Fatalf("limits %v, %v", limits, err)
	}
	var waits *client.Handle
	for n := range 2 {
		h, err := client.New(s).Create(t.Context(), job.New{Type: "T", Queue: "mail"})
		enginetest.Check(t, err)
		_, err = s.Begin(t.Context(), h.ID(), store.Begin{Token: string(rune('a' + n)), Lease: 1e12, Running: []store.RunLimit{{Queue: "mail", Max: 1}}})
		if (err == nil) != (n == 0) {
			t.Errorf("run %d: %v", n+1, err)
		}
		waits = h
	}
	if _, err := s.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if text := weir(t, url, "limits"); !strings.Contains(text, "queue:mail  1       1        1        0s      ") {
		t.Errorf("limits:\n%s", text)
	}
	if text := weir(t, url, "queues"); !strings.HasSuffix(text, "\n1 more ready job waits for a limit: weir limits\n") {
		t.Errorf("queues do not tell of the job that waits:\n%s", text)
	}
	if text := weir(t, url, "queues"); !strings.Contains(text, "mail   open   0        1        0       1      ") {
		t.Errorf("the queue does not count the job that waits:\n%s", text)
	}
	if text := weir(t, url, "queues", "-o", "json"); !strings.Contains(text, `"limited": 1,`) {
		t.Errorf("the queue does not count the job that waits:\n%s", text)
	}
	if text := weir(t, url, "stats"); !strings.Contains(text, "mail 0 and 1 that wait for a limit") {
		t.Errorf("stats do not count the job that waits:\n%s", text)
	}
	why, err := explain.Ask(t.Context(), oneLimit{s, t}, waits, "it", false)
	if err != nil || len(why) != 1 || !strings.Contains(why[0].Text, "waits for a place of limit queue:mail: 1 of 1 running") {
		t.Errorf("why it waits: %+v, %v", why, err)
	}
	var refusal bytes.Buffer
	if code := run(t.Context(), []string{"queue", "limit", "mail", "-1", "--redis", url}, &refusal, &refusal); code != exitUsage || !strings.Contains(refusal.String(), "-1: a limit is at least 1; 0 ends it, as in weir queue limit mail 0") {
		t.Errorf("a limit below zero: code %d, %s", code, refusal.String())
	}
	refusal.Reset()
	enginetest.Check(t, s.SetQueueLimit(t.Context(), "gone", 1)) // as engines do before their queue is known
	if code := run(t.Context(), []string{"queue", "limit", "gone", "2", "--redis", url}, &refusal, &refusal); code != exitUsage || !strings.Contains(refusal.String(), `no queue "gone" is known`) {
		t.Errorf("a queue that nobody knows: code %d, %s", code, refusal.String())
	}
	if text := weir(t, url, "queue", "limit", "gone", "0"); text != "queue gone has no limit of runs at once\n" {
		t.Errorf("ending the limit of a queue that nobody knows says %q", text)
	}
	if text := weir(t, url, "queue", "limit", "mail", "0"); text != "queue mail has no limit of runs at once\n" {
		t.Errorf("ending it says %q", text)
	}
	if text := weir(t, url, "limits"); strings.Contains(text, "mail") {
		t.Errorf("a limit that has ended:\n%s", text)
	}
}

// oneLimit is a store of which nobody may read all limits: of an argument there may be one for each of very many values.
type oneLimit struct {
	*redisstore.Store
	t *testing.T
}

// Limits implements storecall.Store.
func (l oneLimit) Limits(context.Context) ([]redisstore.LimitInfo, error) {
	l.t.Error("all limits are read")
	return nil, nil
}
