package client_test

import (
	"errors"
	"testing"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/job"
)

// What is missing is told before a store is asked; these clients have none.
func TestNothingGiven(t *testing.T) {
	t.Parallel()
	c := client.New(nil, nil)
	h := c.At("00000000-0000-7000-8000-000000000000")
	_, starting := c.Start(t.Context(), nil, nil)
	_, comparing := h.Diff(t.Context(), nil)
	for what, err := range map[string]error{
		"Start": starting, "Diff": comparing, "Patch": h.Patch(t.Context(), nil, nil), "Adopt": h.Adopt(t.Context(), nil, "a"),
	} {
		if !errors.Is(err, job.ErrValue) && !errors.Is(err, job.ErrName) {
			t.Errorf("%s without what it needs: %v", what, err)
		}
	}
}

// A filter that nothing passes is refused.
func TestFilters(t *testing.T) {
	t.Parallel()
	for _, f := range []job.Filter{{Alias: "[a"}, {Below: "xx"}, {After: "zz"}} {
		if err := f.Validate(); err == nil {
			t.Errorf("%+v is taken", f)
		}
	}
	if err := (&client.LetterFilter{Job: "bad"}).Validate(); !errors.Is(err, job.ErrID) {
		t.Errorf("letters of a job that is no ID: %v", err)
	}
}
