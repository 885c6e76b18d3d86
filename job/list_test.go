package job_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
)

const listed = job.ID("019e1f0e-5a3c-7c1d-9f7e-0a4b7c2d8e11")

func TestFilterMatch(t *testing.T) {
	t.Parallel()
	made := time.UnixMilli(0x019e1f0e5a3c)
	one := job.Info{
		ID: listed, Type: "T", Queue: "q", Status: statemachine.Failed, Created: made.Add(time.Hour),
		Labels: map[string]string{"a": "1", "empty": ""},
	}
	child := one
	child.ID, child.Parent = listed.Nth(3), listed
	is := func(s ...statemachine.Status) []statemachine.Status { return s }
	for _, c := range []struct {
		what       string
		f          job.Filter
		one, child bool
	}{
		{"all", job.Filter{}, true, false},
		{"all, also children", job.Filter{All: true}, true, true},
		{"status", job.Filter{Status: is(statemachine.Queued, statemachine.Failed)}, true, false},
		{"other status", job.Filter{Status: is(statemachine.Queued), All: true}, false, false},
		{"type and queue", job.Filter{Type: "T", Queue: "q"}, true, false},
		{"other type", job.Filter{Type: "t"}, false, false},
		{"other queue", job.Filter{Queue: "Q"}, false, false},
		{"labels", job.Filter{Labels: map[string]string{"a": "1", "empty": ""}, Keys: []string{"empty"}}, true, false},
		{"other label", job.Filter{Labels: map[string]string{"a": "2"}}, false, false},
		{"missing label", job.Filter{Labels: map[string]string{"b": ""}}, false, false},
		{"missing key", job.Filter{Keys: []string{"a", "b"}}, false, false},
		{"since it was made", job.Filter{Since: made}, true, false},
		{"since later", job.Filter{Since: made.Add(1), All: true}, false, true},
		{"until it was made", job.Filter{Until: made}, false, false},
		{"until later", job.Filter{Until: made.Add(1), All: true}, true, false},
		{"the hour after", job.Filter{Since: made.Add(time.Hour), Until: made.Add(time.Hour + 1), All: true}, false, true},
	} {
		if got := c.f.Match(&one); got != c.one {
			t.Errorf("%s: a root: %v", c.what, got)
		}
		if got := c.f.Match(&child); got != c.child {
			t.Errorf("%s: a child: %v", c.what, got)
		}
		if c.f.Match(&job.Info{ID: listed}) {
			t.Errorf("%s: a job that is gone", c.what)
		}
	}
}

func TestFilterValidate(t *testing.T) {
	t.Parallel()
	for want, f := range map[string]job.Filter{
		`status "faild": did you mean "failed"?`: {Status: []statemachine.Status{"faild"}},
		`order "-crated": did you mean`:          {Order: "-crated"},
		"type \"a b\"":                           {Type: "a b"},
		"queue \"*\"":                            {Queue: "*"},
		`key "" of a label`:                      {Keys: []string{""}},
		`key "ü" of a label`:                     {Labels: map[string]string{"ü": "x"}},
		"not a job ID":                           {After: "019e"},
	} {
		if err := f.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want %s", f, err, want)
		}
	}
	good := job.Filter{
		Status: statemachine.Statuses(), Order: job.ByType, Type: "T", Queue: "q", Labels: map[string]string{"a": "b"},
		Keys: []string{"k"}, Alias: "a*", After: listed.Nth(2),
	}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
}

func TestIDTimeAndOrder(t *testing.T) {
	t.Parallel()
	if got := listed.Nth(7).Time(); got.UnixMilli() != 0x019e1f0e5a3c {
		t.Errorf("made at %s", got)
	}
	if got := job.ID("nothing").Time(); !got.IsZero() {
		t.Errorf("no ID was made at %s", got)
	}
	before := time.Now().Truncate(time.Millisecond)
	id, err := job.NewID()
	if got := id.Time(); err != nil || got.Before(before) || got.After(time.Now()) {
		t.Errorf("%s was made at %s, not at %s, %v", id, got, before, err)
	}
	const later = job.ID("019e1f0e-5a3d-7000-8000-000000000000")
	inOrder := []job.ID{listed, listed.Nth(2), listed.Nth(10), later, later.Nth(1)}
	for n, a := range inOrder {
		for m, b := range inOrder {
			if got := a.Compare(b); (got < 0) != (n < m) || (got == 0) != (n == m) {
				t.Errorf("%s, %s: %d", a, b, got)
			}
		}
	}
}

func TestLabels(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", job.MaxLabelKey)
	for key, value := range map[string]string{
		"a": "", "customer.id/x-y_Z9": "Zoë <zoe@example.org>, 日本", long: strings.Repeat("v", job.MaxLabelValue),
	} {
		if err := job.CheckLabel(key, value); err != nil {
			t.Error(err)
		}
	}
	for key, value := range map[string]string{
		"": "x", long + "x": "x", "a b": "x", "a=b": "x", "ä": "x", "a\n": "x", "*": "x",
		"long": strings.Repeat("v", job.MaxLabelValue+1), "lines": "a\nb", "escape": "\x1b[31m", "latin1": "caf\xe9", "bidi": "a\u202eb", "zero": "\x00",
	} {
		if err := job.CheckLabel(key, value); !errors.Is(err, job.ErrName) || strings.ContainsAny(err.Error(), "\n\x1b\u202e") {
			t.Errorf("%q=%q: %v", key, value, err)
		}
	}
	plan := &job.Plan{Nodes: []job.Node{{Type: "T", Labels: map[string]string{}}}}
	for n := range job.MaxLabels {
		plan.Nodes[0].Labels[strings.Repeat("k", n+1)] = ""
	}
	if err := plan.Validate(); err != nil {
		t.Error(err)
	}
	plan.Nodes[0].Labels["more"] = ""
	if err := plan.Validate(); !errors.Is(err, job.ErrTooLarge) {
		t.Errorf("%d labels: %v", len(plan.Nodes[0].Labels), err)
	}
	plan.Nodes[0].Labels = map[string]string{"a b": ""}
	if err := plan.Validate(); !errors.Is(err, job.ErrName) {
		t.Error(err)
	}
}
