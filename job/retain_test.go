package job_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/job"
)

func TestParseRetention(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"90s": 90 * time.Second, "12h": 12 * time.Hour, "7d": 7 * 24 * time.Hour, "1d12h": 36 * time.Hour,
		"1h30m": 90 * time.Minute, "1ms": time.Millisecond, "forever": job.Forever, "65535d": 65535 * 24 * time.Hour,
	} {
		got, err := job.ParseRetention(text)
		if err != nil || got != want {
			t.Errorf("%q is %s, %v, want %s", text, got, err, want)
		}
		again, err := job.ParseRetention(job.RetentionText(want))
		if err != nil || again != want {
			t.Errorf("%s is written as %q, which is %s, %v", want, job.RetentionText(want), again, err)
		}
	}
	for _, text := range []string{"", "d", "0", "0d", "-1d", "1d-1h", "1.5d", "7", "7 d", "1us", "65536d", "for ever", "1dd", "65535d2562047h", strings.Repeat("9", 100)} {
		if d, err := job.ParseRetention(text); !errors.Is(err, job.ErrValue) {
			t.Errorf("%q is %s, %v", text, d, err)
		}
	}
}

type plain struct{ Out int }

// What makes no sense is refused before anything is stored.
func TestRetainRefuses(t *testing.T) {
	t.Parallel()
	for want, opts := range map[string][]job.ChildOption{
		"a retention of 0s":      {job.Retain(0)},
		"a retention of -1s":     {job.Retain(-time.Second)},
		"contradict each other":  {job.Retain(time.Hour), job.Release()},
		"contradict each  other": {job.Release(), job.Retain(job.Forever)},
	} {
		_, _, err := job.PlanChild("kid", job.Single(&plain{}, ""), opts...)
		if !errors.Is(err, job.ErrName) || !strings.Contains(err.Error(), strings.ReplaceAll(want, "  ", " ")) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	p, _, err := job.PlanChild("kid", job.Single(&plain{}, ""), job.Retain(time.Hour))
	if err != nil || p.Retain != time.Hour || p.Release {
		t.Errorf("%+v, %v", p, err)
	}
	if p, _, err = job.PlanChild("kid", job.Single(&plain{}, ""), job.Release()); err != nil || p.Retain != 0 || !p.Release {
		t.Errorf("%+v, %v", p, err)
	}
	if err := (&job.Plan{Nodes: []job.Node{{Type: "T"}}, Retain: -1}).Validate(); !errors.Is(err, job.ErrName) {
		t.Errorf("a plan with a negative retention: %v", err)
	}
}
