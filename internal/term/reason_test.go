package term_test

import (
	"testing"

	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/job"
)

func TestReason(t *testing.T) {
	t.Parallel()
	const root = "01a21c5f-f784-76f4-9dca-ef476dabf790"
	names := term.NamesOf([]*job.Info{{ID: root, Type: "invoices"}, {ID: root + ".2", Type: "Validate", Name: "validate"}})
	for reason, want := range map[string]string{
		"":                                     "",
		"full: port in of job " + root + ".2":  "full: port in of job validate",
		"full: port in of job " + root + ".21": "full: port in of job " + root + ".21",
		"asked by " + root + ", twice\nmore":   "asked by invoices, twice",
		"order " + root + "0 is odd":           "order " + root + "0 is odd",
	} {
		if got := names.Reason(&job.Info{Reason: reason}); got != want {
			t.Errorf("%q: got %q, want %q", reason, got, want)
		}
	}
}
